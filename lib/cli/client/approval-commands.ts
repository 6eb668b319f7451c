import { readFile, writeFile } from 'node:fs/promises'
import { StrKey, TransactionBuilder } from '@stellar/stellar-sdk'
import { approveRun } from '#lib/sdk/approve-run.ts'
import { handOver, readHandedOver } from '#lib/sdk/hand-over.ts'
import { type BatchState, readBatch } from '#lib/sdk/payees.ts'
import { RunError } from '#lib/sdk/run-error.ts'
import { writeEvidence } from '#lib/sdk/run-evidence.ts'
import { addToChallenge, beginSignIn } from '#lib/sdk/sign-in.ts'
import { readSigners } from '#lib/wallet/account-signers.ts'
import { approvalKey, nameApprovalKey, openApprovalKey } from '#lib/wallet/approval-key.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { need } from '../process/command.ts'
import { printMessage } from '../process/output.ts'
import { readAmounts } from './amounts-file.ts'
import { describeCall } from './call-description.ts'
import { type Given, type Tools, trustedRelay } from './delegation-commands.ts'
import { openNetworkOf } from './network-options.ts'
import { connect, homeOf, openSession } from './wallet-session.ts'

export const APPROVAL_USAGE = `
  Accounts with several signers (docs/runs.md#several-signers); --session TOKEN uses a session instead of signing in:

  challenge --secret S… [--account G…]  requests a sign-in challenge for an account, and signs it; prints it for "sign"
  sign     --secret S… --signed-xdr … [--account G…]
                                        says what a call does, or that it is a sign-in of the account, and adds a signature;
                                        prints it
  approval-key --secret S…              the key to which a preparer encrypts amounts for this approver, signed by it
  hand-over --secret S… --batch … --to KEY
                                        encrypts to an approver what opens the seals of a batch; prints it
  approve  --secret S… --account G… --batch … --amounts list.csv --opened FILE
                                        compares a run with your own list and each amount with its seal, and signs it. Each line of
                                        list.csv has address,amount or contractor,amount,address; FILE is from hand-over
  run-evidence --batch … --out FILE     what was signed for the newest run of a batch, by whom, and the payments
                                        (npm run -s disclosure -- verify-run checks it)`

export const APPROVAL_OPTIONS = {
  account: { type: 'string' },
  opened: { type: 'string' },
} as const

/** The commands for accounts with several signers, by name. */
export function approvalCommands({
  signerOf,
}: Pick<Tools, 'signerOf'>): Record<string, (given: Given) => Promise<string>> {
  return {
    challenge: async (given) => {
      const { account } = given
      const options = { ...homeOf(given), ...(account !== undefined && { account }) }
      return await beginSignIn(connect(given.service), keypairSigner(signerOf(given)), options)
    },
    sign: async (given) => {
      const [signer, signedXdr] = [keypairSigner(signerOf(given)), need(given, 'signed-xdr')]
      const network = await openNetworkOf(given)
      const { passphrase: networkPassphrase } = network
      const transaction = TransactionBuilder.fromXdr(signedXdr, networkPassphrase)
      if ('sequence' in transaction && transaction.sequence === '0') {
        const account = need(given, 'account')
        printMessage(`Signing: a sign-in of ${account} at ${given.service}`)
        const challenge = { transaction: signedXdr, networkPassphrase }
        return await addToChallenge(connect(given.service), signer, challenge, { ...homeOf(given), account })
      }
      const relay = await trustedRelay(given, network).catch(() => undefined)
      printMessage(`Signing: ${describeCall(signedXdr, { ...network, relay })}`)
      return await signer.signTransaction(signedXdr, { networkPassphrase })
    },
    'approval-key': async (given) => JSON.stringify(await nameApprovalKey(keypairSigner(signerOf(given)))),
    'hand-over': async (given) => {
      const [signer, batch, to] = [signerOf(given), need(given, 'batch'), need(given, 'to')]
      const network = await openNetworkOf(given)
      const { signers } = await readSigners(network.rpc, signer.publicKey())
      const key = openApprovalKey(to, signers)
      const { publicKey: relayKey } = await trustedRelay(given, network)
      const { payouts } = await readBatch(await openSession(given, () => signer), batch)
      const { keys } = openHolder(signer, network.token)
      return await handOver({ keys, batch, relayKey }, payouts.filter(isUnpaid), key)
    },
    approve: async (given) => {
      const [signer, batch, account] = [signerOf(given), need(given, 'batch'), need(given, 'account')]
      const [amounts, opened] = [need(given, 'amounts'), need(given, 'opened')]
      const payees = readAmounts(await readFile(amounts, 'utf8')).map(({ contractor, amount, address }) => {
        if (isAddress(contractor)) {
          if (address === undefined || address === contractor) return { address: contractor, amount }
          throw new RunError('list-differs', `your list has two addresses in one line, ${contractor} and ${address}`)
        }
        if (address !== undefined) return { address, amount, contractor: contractor.toLowerCase() }
        throw new RunError('list-differs', `your list has no address for ${contractor}: nothing was signed`)
      })
      const network = await openNetworkOf(given)
      const key = await approvalKey(keypairSigner(signer))
      const seals = await readHandedOver(key, batch, await readFile(opened, 'utf8'))
      const client = await openSession(given, () => signer)
      const relay = await trustedRelay(given, network)
      // The service knows ids of contractors only, and a list may name emails.
      const listed = payees.map(({ contractor, ...payee }) => (isId(contractor) ? { ...payee, contractor } : payee))
      const request = { client, deployment: network, signer, batch, account, payees: listed, seals, relay }
      const { started, weight, needed, errors } = await approveRun(request)
      if (errors.length > 0)
        return `signed, and the run has enough signatures. It cannot start yet: ${JSON.stringify(errors)}`
      return started
        ? 'approved: the run has started'
        : `signed with weight ${weight} of ${needed}: the run waits for other signers`
    },
    'run-evidence': async (given) => {
      const [batch, out] = [need(given, 'batch'), need(given, 'out')]
      const network = await openNetworkOf(given)
      const client = await openSession(given, () => signerOf(given))
      const evidence = await writeEvidence({ client, deployment: network, batch })
      await writeFile(out, `${JSON.stringify(evidence, null, 2)}\n`, { flag: 'wx' })
      return `${out}: ${evidence.signatures.length} signatures, ${evidence.payments.length} payments`
    },
  }
}

const isUnpaid = ({ status }: BatchState['payouts'][number]) => status === 'ready' || status === 'failed'
const isAddress = (text: string) => StrKey.isValidEd25519PublicKey(text) || StrKey.isValidContract(text)
const isId = (text: string | undefined): text is string => text !== undefined && /^[\da-f-]{36}$/.test(text)
