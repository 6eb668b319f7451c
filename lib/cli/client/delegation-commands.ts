import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Keypair } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { matchPayees, type NewPayee, type Payee } from '#lib/sdk/payees.ts'
import { runBatch } from '#lib/sdk/run.ts'
import type { RunRequest } from '#lib/sdk/run-request.ts'
import { sponsorCall } from '#lib/sdk/sponsored-call.ts'
import { readSource } from '#lib/setup/document.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { onOneLine } from '#lib/text/printable.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDelegation, buildRevocation } from '#lib/wallet/calls.ts'
import { RELAY_DOCUMENT, type RelayDocument } from '#lib/wallet/deployment.ts'
import { readOwnDelegations, readPace, readPastDelegations } from '#lib/wallet/escrow.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { sealOwnPayout } from '#lib/wallet/seal-key.ts'
import { requireTrusted } from '#lib/wallet/trusted-relay.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { need, type Values } from '../process/command.ts'
import { printMessage } from '../process/output.ts'
import { readAmounts } from './amounts-file.ts'
import { type NETWORK_OPTIONS, openNetworkOf } from './network-options.ts'
import { notesFile } from './notes-file.ts'
import type { ClientNetwork } from './participants.ts'
import { signRun } from './run-signature.ts'
import { openSession } from './wallet-session.ts'

export const DELEGATION_USAGE = `
  delegate --secret S… --spender G… --amount 12.5 --ledgers 2000
                                        escrows an amount that a channel of the relay may pay; prints the signedXDR
  revoke   --secret S… --spender G…     ends a delegation, and returns the rest; prints the signedXDR
  delegations --secret S…               what each channel may still pay, and until which ledger
  call     --secret S… --signed-xdr …   has a signed delegate or revoke sponsored; prints its hash. With --session TOKEN, no
                                        secret is needed
  seal     --secret S… --relay KEY --batch … --contractor … --spender G… --amount 12.5
                                        seals an amount to the relay's public key (a JWK); prints the encryptedAmount
  manifest --secret S… --batch … --amounts amounts.csv
                                        signs a run whose seals and delegations exist; prints the body of POST …/run.
                                        --unchecked, without a list, signs what the service says
  run      --secret S… --batch … --amounts amounts.csv [--channels 2] [--revoke]
                                        has the relay pay a batch: seals, delegates, signs, starts and follows it, and
                                        reads from the ledger what is paid. May be interrupted and repeated at any point.
                                        amounts.csv has contractor (id, email or address), amount, and the payee's address

  --notes FILE    your own notes, beside the list (default: payroll-notes.txt in its folder): the seals and delegations that
                  you have made, the payouts that you have seen, and the addresses that you have confirmed. Keep this file
  --trust-new-payees
                  confirms the addresses that only the service has of the payees in the list, and notes them
  --assume-unpaid
                  no payout of the batch was paid before, but those that the ledger shows by their marks
  --max-ledgers N how long a delegation may last (default: twice what its payouts take, and a day)
  --relay-document FILE_OR_URL
                  the relay whose key and channels are trusted (default: the one in the deployment document)`

export const DELEGATION_OPTIONS = {
  spender: { type: 'string' },
  ledgers: { type: 'string' },
  relay: { type: 'string' },
  batch: { type: 'string' },
  contractor: { type: 'string' },
  amounts: { type: 'string' },
  notes: { type: 'string' },
  unchecked: { type: 'boolean' },
  'trust-new-payees': { type: 'boolean' },
  'assume-unpaid': { type: 'boolean' },
  'max-ledgers': { type: 'string' },
  channels: { type: 'string' },
  'signed-xdr': { type: 'string' },
  'relay-document': { type: 'string' },
  revoke: { type: 'boolean' },
} as const

/** The values of these options and of the shared ones. */
export type Given = Values<typeof DELEGATION_OPTIONS> &
  Values<typeof NETWORK_OPTIONS> & {
    session?: string | undefined
    account?: string | undefined
    to?: string | undefined
    out?: string | undefined
    amount?: string | undefined
    'home-domain'?: string | undefined
    'max-fee'?: string | undefined
    opened?: string | undefined
    service: string
  }

/** Shared with the other commands. */
export interface Tools {
  signerOf(given: Given): Keypair
  /** runs a command that generates a proof */
  proving(given: Given, command: (network: ClientNetwork) => Promise<string>): Promise<string>
}

/**
 * The relay that the user trusts: it is named by --relay-document, or else by the deployment document.
 * @throws WalletError `relay-unknown`
 */
export async function trustedRelay(given: Given, network: ClientNetwork): Promise<RelayDocument> {
  if (given['relay-document'] !== undefined) return await readRelayDocument(given['relay-document'])
  if (network.relay) return network.relay
  throw new WalletError('relay-unknown', 'the deployment document names no relay: use --relay-document')
}

/**
 * Reads a relay's document, a file or a URL: that of its host, or a deployment document that names it.
 * @throws WalletError `relay-unknown` for a document without a relay
 */
async function readRelayDocument(source: string): Promise<RelayDocument> {
  const document: unknown = JSON.parse(await readSource(source))
  const { data: named } = z.object({ relay: RELAY_DOCUMENT }).safeParse(document)
  const relay = named?.relay ?? RELAY_DOCUMENT.safeParse(document).data
  if (relay) return relay
  throw new WalletError('relay-unknown', `${source} names no relay: it has no publicKey and channels`)
}

/** The commands about delegations to the relay's channels, by name. */
export function delegationCommands({ signerOf, proving }: Tools): Record<string, (given: Given) => Promise<string>> {
  const openRun = async (given: Given, network: ClientNetwork) => {
    const [signer, batch] = [signerOf(given), need(given, 'batch')]
    const relay = await trustedRelay(given, network)
    const holder = openHolder(signer, network.token)
    return {
      deployment: network,
      batch,
      relay,
      client: await openSession(given, () => signer),
      holder,
      notes: openNotes(holder, notesOf(given)),
      assumesUnpaid: given['assume-unpaid'] ?? false,
      say: (line: string) => printMessage(onOneLine(line)),
    }
  }
  return {
    delegate: (given) =>
      proving(given, async (network) => {
        const spender = need(given, 'spender')
        await requireTrusted(await trustedRelay(given, network), { channels: [spender] })
        const holder = openHolder(signerOf(given), network.token)
        const ledgers = positive(need(given, 'ledgers'), '--ledgers')
        const { spendable: opening } = await syncBalance(network, holder)
        const { latestLedger: sequence } = await readPace(network)
        const amount = parseUnits(need(given, 'amount'))
        const delegation = { spender, amount, liveUntilLedger: sequence + ledgers, opening }
        return (await buildDelegation(network, holder, delegation)).signedXdr
      }),
    revoke: async (given) => {
      const [signer, spender] = [signerOf(given), need(given, 'spender')]
      return (await buildRevocation(await openNetworkOf(given), signer, spender)).signedXdr
    },
    delegations: async (given) => {
      const signer = signerOf(given)
      const network = await openNetworkOf(given)
      const holder = openHolder(signer, network.token)
      // Where history is cut, the channels of the document and of the notes are read all the same.
      const channels = network.relay?.channels ?? []
      const noted = openNotes(holder, notesOf(given)).delegations()
      const past = await readPastDelegations(network, holder).catch((error: unknown) => {
        if (!(error instanceof WalletError && error.code === 'history-incomplete')) throw error
        printMessage('no archive has all events: a delegation to another channel may be missing')
        return new Map<string, number[]>()
      })
      const spenders = [...new Set([...past.keys(), ...channels, ...noted.map(({ channel }) => channel)])]
      const { delegations, latestLedger } = await readOwnDelegations(network, holder, spenders)
      const lines = delegations.map(({ spender, left, liveUntilLedger }) => {
        const amount = left === undefined ? 'unreadable' : formatUnits(left)
        return `${spender}  ${amount}  until ledger ${liveUntilLedger}${liveUntilLedger < latestLedger ? ', ended' : ''}`
      })
      if (latestLedger > 0) printMessage(`as of ledger ${latestLedger}`)
      return lines.join('\n') || 'none'
    },
    call: async (given) => {
      const signedXdr = need(given, 'signed-xdr')
      return await sponsorCall(await openSession(given, () => signerOf(given)), signedXdr)
    },
    seal: async (given) => {
      const publicKey = RELAY_DOCUMENT.shape.publicKey.parse(JSON.parse(need(given, 'relay')))
      const [batch, contractor, spender] = [need(given, 'batch'), need(given, 'contractor'), need(given, 'spender')]
      const network = await openNetworkOf(given)
      await requireTrusted(await trustedRelay(given, network), { publicKey, channels: [spender] })
      const amount = parseUnits(need(given, 'amount'))
      const binding = { batch, contractor, spender }
      const holder = openHolder(signerOf(given), network.token)
      const encryptedAmount = await sealOwnPayout(holder, publicKey, binding, amount)
      const notes = openNotes(holder, notesOf(given))
      notes.addSeals([{ payment: { batch, contractor, channel: spender, amount }, encryptedAmount }])
      return encryptedAmount
    },
    manifest: async (given) => {
      const isUnchecked = given.unchecked ?? false
      if (!isUnchecked) need(given, 'amounts')
      else if (given.amounts !== undefined)
        throw new Error('--unchecked signs what the service says: leave --amounts out')
      const run = await openRun(given, await openNetworkOf(given))
      return await signRun(run, isUnchecked ? undefined : await readPayees(given, run))
    },
    run: (given) =>
      proving(given, async (network) => {
        need(given, 'amounts')
        const channels = positive(given.channels ?? '1', '--channels')
        const most = given['max-ledgers']
        const maxLedgers = most === undefined ? undefined : positive(most, '--max-ledgers')
        const run = await openRun(given, network)
        const payees = await readPayees(given, run)
        const { paid, payouts } = await runBatch({
          ...run,
          payees,
          channels,
          maxLedgers,
          revokes: given.revoke ?? false,
        })
        return `${paid} of ${payouts} payouts paid`
      }),
  }
}

/** The employer's own notes: beside its list. */
export const notesOf = ({ notes, amounts = '' }: Pick<Given, 'notes' | 'amounts'>) =>
  notesFile(notes ?? join(dirname(amounts), 'payroll-notes.txt'))

/** The payees of the list. Those whose addresses only the service has are shown, and noted if the user says so. */
async function readPayees(given: Given, { client, notes }: Pick<RunRequest, 'client' | 'notes'>): Promise<Payee[]> {
  const trust = (fresh: readonly NewPayee[]) => {
    if (!given['trust-new-payees']) return false
    for (const { named, name, address } of fresh) printMessage(onOneLine(`Noted: ${named} is ${name}, ${address}`))
    return true
  }
  return await matchPayees(client, readAmounts(await readFile(need(given, 'amounts'), 'utf8')), notes, trust)
}

function positive(text: string, option: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value <= 0) throw new Error(`${option} is not a positive whole number`)
  return value
}
