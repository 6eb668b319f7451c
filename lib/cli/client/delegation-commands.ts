import type { Keypair } from '@stellar/stellar-sdk'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { buildRevocation } from '#lib/wallet/calls.ts'
import { RELAY_DOCUMENT } from '#lib/wallet/deployment.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { sealPayout } from '#lib/wallet/seal.ts'
import { readOwnDelegations, readPastDelegations, signDelegation } from './delegations.ts'
import type { TestNetwork } from './participants.ts'
import { readRelayDocument, requireTrusted } from './relay-document.ts'
import { connectWallet, sponsorCall } from './wallet-session.ts'

export const DELEGATION_USAGE = `
  delegate --secret S… --spender G… --amount 12.5 --ledgers 2000
                                        escrows an amount that a channel of the relay may pay; prints the signedXDR
  revoke   --secret S… --spender G…     ends a delegation, and returns the rest; prints the signedXDR
  delegations --secret S…               what each channel may still pay, and until which ledger
  call     --secret S… --signed-xdr …   has a signed delegate or revoke sponsored; prints its hash
  seal     --relay KEY --batch … --contractor … --spender G… --amount 12.5
                                        seals an amount to the relay's public key (a JWK); prints the encryptedAmount

  --relay-document FILE_OR_URL
                  the relay whose key and channels are trusted (default: the one in the deployment document)`

export const DELEGATION_OPTIONS = {
  spender: { type: 'string' },
  ledgers: { type: 'string' },
  relay: { type: 'string' },
  batch: { type: 'string' },
  contractor: { type: 'string' },
  'signed-xdr': { type: 'string' },
  'relay-document': { type: 'string' },
} as const

type OptionName = keyof typeof DELEGATION_OPTIONS

export type DelegationOptions = { [Name in OptionName]?: string | undefined }

/** What the commands have in common with the others. */
interface Tools<Given> {
  /** the value of an option that must be there */
  need(given: Given, option: OptionName | 'amount'): string
  signerOf(given: Given): Keypair
  openNetwork(given: Given): Promise<TestNetwork>
  /** runs a command that proves something */
  proving(given: Given, command: (network: TestNetwork) => Promise<string>): Promise<string>
}

/** The relay that the user trusts: that of its own document, or of the deployment document. */
const trustedRelay = async (given: DelegationOptions, network: TestNetwork) =>
  given['relay-document'] === undefined ? network.relay : await readRelayDocument(given['relay-document'])

/** The commands about delegations to the relay's channels, by name. */
export function delegationCommands<Given extends DelegationOptions & { service: string }>({
  need,
  signerOf,
  openNetwork,
  proving,
}: Tools<Given>): Record<string, (given: Given) => Promise<string>> {
  return {
    delegate: (given) =>
      proving(given, async (network) => {
        const spender = need(given, 'spender')
        await requireTrusted(await trustedRelay(given, network), { channels: [spender] })
        const holder = openHolder(signerOf(given), network.token)
        const ledgers = positive(need(given, 'ledgers'), '--ledgers')
        return await signDelegation(network, holder, { spender, amount: need(given, 'amount'), ledgers })
      }),
    revoke: async (given) => {
      const [signer, spender] = [signerOf(given), need(given, 'spender')]
      return (await buildRevocation(await openNetwork(given), signer, spender)).signedXdr
    },
    delegations: async (given) => {
      const signer = signerOf(given)
      const network = await openNetwork(given)
      const holder = openHolder(signer, network.token)
      const spenders = [...(await readPastDelegations(network, holder)).keys()]
      const { delegations, latestLedger } = await readOwnDelegations(network, holder, spenders)
      const lines = delegations.map(({ spender, left, liveUntilLedger }) => {
        const amount = left === undefined ? 'unreadable' : formatUnits(left)
        return `${spender}  ${amount}  until ledger ${liveUntilLedger}${liveUntilLedger < latestLedger ? ', ended' : ''}`
      })
      return lines.join('\n') || 'none'
    },
    call: async (given) => {
      const [signer, signedXdr] = [signerOf(given), need(given, 'signed-xdr')]
      return await sponsorCall(await connectWallet(given.service, signer), signedXdr)
    },
    seal: async (given) => {
      const publicKey = RELAY_DOCUMENT.shape.publicKey.parse(JSON.parse(need(given, 'relay')))
      const [batch, contractor, spender] = [need(given, 'batch'), need(given, 'contractor'), need(given, 'spender')]
      const trusted = await trustedRelay(given, await openNetwork(given))
      await requireTrusted(trusted, { publicKey, channels: [spender] })
      return await sealPayout(publicKey, { batch, contractor, spender }, parseUnits(need(given, 'amount')))
    },
  }
}

function positive(text: string, option: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value <= 0) throw new Error(`${option} is not a positive whole number`)
  return value
}
