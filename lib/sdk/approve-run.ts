import type { Keypair } from '@stellar/stellar-sdk'
import type { JWK } from 'jose'
import { readDelegations } from '#lib/wallet/account.ts'
import { readSigners } from '#lib/wallet/account-signers.ts'
import type { Deployment, RelayDocument } from '#lib/wallet/deployment.ts'
import { hashSeal, type Manifest, parseManifest, signManifest } from '#lib/wallet/manifest.ts'
import { openOwnSeal } from '#lib/wallet/seal-key.ts'
import { addressOf, type Signer, signerOf } from '#lib/wallet/signer.ts'
import { requireTrusted } from '#lib/wallet/trusted-relay.ts'
import type { OpenedSeal } from './hand-over.ts'
import { patiently } from './patience.ts'
import { type PayrollClient, take } from './payroll-client.ts'
import { RunError } from './run-error.ts'

/** A line of the approver's own list. */
export interface ApprovedPayee {
  /** G… or C… */
  address: string
  /** base units */
  amount: bigint
  /** the id of the contractor, if the list has it */
  contractor?: string | undefined
}

/** A run that a signer of the paying account is asked to approve. */
export interface ApprovalRequest {
  /** with a session of the signer, or of the employer */
  client: PayrollClient
  deployment: Pick<Deployment, 'rpc' | 'token' | 'passphrase'>
  signer: Keypair | Signer
  batch: string
  /** the account that pays, as the approver knows it, G… */
  account: string
  /** what is to be paid, from a source other than the service */
  payees: readonly ApprovedPayee[]
  /** what the preparer has handed over */
  seals: readonly OpenedSeal[]
  /** the relay that the approver trusts, such as the deployment document's */
  relay: RelayDocument | undefined
}

export interface Approved {
  /** whether the run has started */
  started: boolean
  weight: number
  needed: number
  /** what is in the way of a run that has enough signatures */
  errors: readonly { payoutId?: string; channel?: string; reason: string }[]
}

/**
 * Approves a run: compares the manifest with the approver's own list, opens the very seals that it names, compares each amount, and
 * signs. Nothing is signed unless payees, addresses, count, amounts, channels, account and network are those of the list, the
 * approver's documents and its own RPC.
 * @throws RunError `list-differs`, `not-started`; WalletError `relay-unknown`; PayrollError; LedgerError
 */
export async function approveRun(request: ApprovalRequest): Promise<Approved> {
  const { client, batch, signer, account } = request
  const path = { id: batch }
  const view = await patiently(() =>
    take(client.GET('/batches/{id}/approval', { params: { path, query: { payer: account } } })),
  )
  if (view.status !== 'waiting') throw new RunError('not-started', `the run is ${view.status}: nothing is to be signed`)
  const manifest = await checkManifest(request, view.manifest)
  const signature = await signManifest(signerOf(signer), manifest)
  const { approval, run } = await patiently(() =>
    take(client.POST('/batches/{id}/run', { params: { path }, body: { signature, payer: account } })),
  )
  const { weight = 0, needed = 0, errors = [] } = approval ?? {}
  return { started: run?.status === 'running' || run?.status === 'completed', weight, needed, errors }
}

/**
 * Reads a manifest, and compares it with everything that the approver knows.
 * @throws RunError `list-differs`, `not-started`; WalletError `relay-unknown`; LedgerError
 */
async function checkManifest(request: ApprovalRequest, text: string): Promise<Manifest> {
  const { deployment, batch, account, relay, signer } = request
  const manifest = parseManifest(text)
  if (!manifest) throw differs('the service returned something other than a manifest')
  if (manifest.passphrase !== deployment.passphrase || manifest.token !== deployment.token)
    throw differs('the manifest is for another network or token')
  if (manifest.batch !== batch) throw differs('the manifest is for another batch')
  if (manifest.account !== account) throw differs(`the manifest would pay from ${manifest.account}`)
  const { signers } = await readSigners(deployment.rpc, account)
  if (signers.every(({ key }) => key !== addressOf(signer)))
    throw new RunError('not-started', `${addressOf(signer)} is no signer of ${account}`)
  const channels = manifest.delegations.map(({ channel }) => channel)
  const trusted = await requireTrusted(relay, {
    channels: [...new Set([...channels, ...manifest.payouts.map(({ channel }) => channel)])],
  })
  const pairs = channels.map((spender) => ({ owner: account, spender }))
  const { delegations } = await readDelegations(deployment, pairs)
  const isOther = manifest.delegations.find(
    ({ liveUntilLedger }, index) => delegations[index]?.live_until_ledger !== liveUntilLedger,
  )
  if (isOther) throw differs(`the ledger has another delegation to ${isOther.channel}`)
  await checkPayouts(request, manifest, trusted.publicKey)
  return manifest
}

/** Requires that the manifest pays the list, and nothing else. */
async function checkPayouts({ payees, seals }: ApprovalRequest, manifest: Manifest, relayKey: JWK): Promise<void> {
  const listed = new Map(payees.map((payee) => [payee.address, payee]))
  if (listed.size < payees.length) throw differs('your list has an address twice')
  if (manifest.payouts.length !== payees.length)
    throw differs(`the manifest has ${manifest.payouts.length} payouts, and your list has ${payees.length}`)
  const given = new Map(seals.map((seal) => [seal.payout, seal]))
  const paid = new Set<string>()
  for (const { payout, contractor, address, channel: spender, sealHash } of manifest.payouts) {
    const payee = listed.get(address)
    if (!payee) throw differs(`payout ${payout} would pay ${address}, which your list does not have`)
    if (paid.has(address)) throw differs(`the manifest pays ${address} twice`)
    paid.add(address)
    if (payee.contractor !== undefined && payee.contractor !== contractor)
      throw differs(`payout ${payout} to ${address} is for contractor ${contractor}`)
    const seal = given.get(payout)
    if (!seal) throw differs(`the amount of payout ${payout} was not handed over`)
    if (hashSeal(seal.encryptedAmount) !== sealHash)
      throw differs(`the amount of payout ${payout} was sealed again since it was handed over`)
    const binding = { batch: manifest.batch, contractor, spender }
    const amount = await openOwnSeal(relayKey, binding, seal)
    if (amount === undefined) throw differs(`the seal of payout ${payout} cannot be opened with what was handed over`)
    if (amount !== payee.amount) throw differs(`the amount of payout ${payout} to ${address} is not that of your list`)
  }
}

const differs = (problem: string) => new RunError('list-differs', `${problem}: nothing was signed`)
