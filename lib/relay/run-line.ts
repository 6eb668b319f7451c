import { Account } from '@stellar/stellar-sdk'
import { and, eq, inArray, isNotNull } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { RUNNABLE } from '#lib/directory/payouts/seals.ts'
import { type AccountReading, authOf } from '#lib/stellar/account.ts'
import { isLagging } from '#lib/stellar/view.ts'
import type { Line } from '#lib/transfers/line.ts'
import type { LineErrorCode } from '#lib/transfers/line-error.ts'
import { lastLedgerOf } from '#lib/transfers/rows.ts'
import { readDelegations } from '#lib/wallet/account.ts'
import {
  hashSeal,
  isSignedManifest,
  type Manifest,
  type ManifestPayout,
  parseManifest,
  parseSignatures,
} from '#lib/wallet/manifest.ts'
import { type Allowance, openAllowance } from '#lib/wallet/spending.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { LineError } from './line-error.ts'
import type { PaymentKeys } from './party-keys.ts'
import type { Channel, Relay } from './relay.ts'
import { validityLedgers } from './run-terms.ts'
import { unsealPayout } from './sealing.ts'

/** A line of a run with everything that the employer signed about it, and its amount (base units). */
interface RunLine {
  /** base64, of the signers of the account that pays */
  signatures: readonly string[]
  manifest: Manifest
  line: ManifestPayout
  /** the account whose escrow pays, G… */
  owner: string
  amount: bigint
  /** the last ledger of the delegation that the manifest names */
  liveUntil: number
}

/**
 * Reads what a line of a run is to pay, and compares the rows with the manifest: an attacker who can write to the database must not be
 * able to redirect a payment. The signature is checked by `openEscrow`, because that needs the ledger.
 * @throws LineError `payout-gone`, `payout-busy`, `manifest-invalid`, `seal-invalid`
 */
export async function readLine(relay: Relay, channel: Channel, row: Line): Promise<RunLine> {
  const db = await relay.database()
  const [job] = await db.select().from(relayJobs).where(eq(relayJobs.id, row.job))
  const { batch, contractor, address } = payouts
  const isPayout = eq(payouts.id, row.payout ?? '')
  const [payout] = await db.select({ batch, contractor, address }).from(payouts).where(isPayout)
  const invalid = (problem: string) => new LineError('manifest-invalid', problem)
  if (!job || job.manifest === null || job.signature === null) throw invalid('the run has no signed manifest')
  if (!payout) throw invalid('there is no such payout')
  await requireUnpaid(db, row)
  const manifest = parseManifest(job.manifest)
  if (!manifest) throw invalid('the manifest cannot be read')
  const line = manifest.payouts.find((each) => each.payout === row.payout)
  if (!line) throw invalid('the manifest does not name the payout')
  const isHere =
    manifest.passphrase === relay.network.passphrase &&
    manifest.token === relay.token &&
    manifest.batch === job.batch &&
    manifest.batch === payout.batch &&
    manifest.account === job.userSub &&
    manifest.account === row.quotaAccount
  const isSame =
    line.channel === channel.address &&
    line.channel === row.spender &&
    line.address === row.recipient &&
    line.address === payout.address &&
    line.contractor === payout.contractor &&
    line.sealHash === hashSeal(row.sealedAmount ?? '')
  if (!isHere || !isSame) throw invalid('a row differs from the manifest')
  const amount = await unsealPayout(relay.key, bindingOf(manifest, line), row.sealedAmount ?? '').catch(() => undefined)
  if (amount === undefined) throw new LineError('seal-invalid', 'the seal cannot be opened, or is bound elsewhere')
  const liveUntil = manifest.delegations.find(({ channel: each }) => each === line.channel)?.liveUntilLedger ?? 0
  return { signatures: parseSignatures(job.signature), manifest, line, owner: manifest.account, amount, liveUntil }
}

const bindingOf = ({ batch }: Manifest, { contractor, channel: spender }: ManifestPayout) => ({
  batch,
  contractor,
  spender,
})

/**
 * Requires that nothing else pays the line's payout. A payment that this database has recorded, as a transfer or in a line, counts even
 * if the payout's status contradicts it.
 * @throws LineError `payout-gone` if it was paid or canceled, `payout-busy` while another transfer may still pay it
 */
export async function requireUnpaid(db: Database, { payout: id }: Pick<Line, 'payout'>): Promise<void> {
  if (id === null) throw new Error('a line of a job has no payout')
  const [payout] = await db.select({ status: payouts.status }).from(payouts).where(eq(payouts.id, id))
  const mayPay = and(eq(transfers.payout, id), inArray(transfers.status, ['open', 'succeeded', 'unknown']))
  const paying = await db.select({ status: transfers.status }).from(transfers).where(mayPay)
  if (paying.some(({ status }) => status === 'open')) throw new LineError('payout-busy', 'another transfer pays it')
  const hasPaidLine = (await db.$count(relayLines, and(eq(relayLines.payout, id), eq(relayLines.outcome, 'paid')))) > 0
  const isOver = payout && !RUNNABLE.some((status) => status === payout.status)
  if (hasPaidLine || paying.length > 0 || isOver) throw new LineError('payout-gone', 'the payout is paid or canceled')
}

const doubtful = (code: LineErrorCode, problem: string) => new LineError(code, problem, { isDoubtful: true })

/**
 * Finds what a line needs: the account's signers, who must have signed the manifest with the weight of its medium threshold; the
 * delegation, which must be the signed one and last until the payment has expired; the channel's allowance; and the payee. The rest of
 * the channel's last payment and the keys are not read again: if they have changed, the simulation fails.
 * @throws LineError `manifest-invalid`, `delegation-revoked`, `delegation-ended`, `recipient-unregistered`,
 *   `balance-stale` if the RPC lags behind the channel's last payment; LedgerError
 */
export async function openEscrow(relay: Relay, channel: Channel, run: RunLine) {
  const { owner, manifest, signatures } = run
  const { readAccount } = relay.memory
  const [{ account }, own] = await Promise.all([
    readAccount(owner),
    readAccount(channel.address),
    // The sponsor needs its own account as well, for the same payment: the three share a call.
    relay.sponsor.readFloat(relay.sponsor.tracker.view.latestLedger()),
  ])
  if (!account || !isSignedManifest(manifest, signatures, authOf(owner, account))) {
    throw doubtful('manifest-invalid', 'the signers of the account who have signed the manifest have too little weight')
  }
  const allowance = (await followLast(relay, channel, run, own)) ?? (await readAllowance(relay, channel, run, own))
  if (!own.account) throw new LineError('channel-unfit', 'the channel has no account', { problem: 'account' })
  /** the channel's account, as the source of the payment's transaction */
  const source = new Account(channel.address, own.account.seqNum.toString())
  return { allowance, own, source, ...(await readPaymentKeys(relay, run)) }
}

/** The allowance after this process's last payment, if that was from the same delegation, and the channel's last transaction. */
async function followLast(relay: Relay, { address }: Channel, run: RunLine, own: AccountReading) {
  const last = relay.memory.lastPayments.get(address)
  if (last?.allowance.owner !== run.owner || last.liveUntil !== run.liveUntil) return undefined
  const { sequenceNumber, allowance } = last
  if (own.account?.seqNum !== sequenceNumber) return undefined
  const isIt = and(eq(transfers.account, address), eq(transfers.sequenceNumber, sequenceNumber))
  const hasPaid = and(isIt, eq(transfers.status, 'succeeded'))
  return (await (await relay.database()).$count(transfers, hasPaid)) > 0 ? allowance : undefined
}

/** @throws LineError `delegation-ended` if the ledger would charge for a payment that is applied too late */
export function requireTime({ network }: Pick<Relay, 'network'>, run: RunLine, latestLedger: number): void {
  if (run.liveUntil < latestLedger + validityLedgers(network)) {
    throw doubtful('delegation-ended', 'the delegation ends before the payment would')
  }
}

async function readAllowance(relay: Relay, channel: Channel, run: RunLine, own: AccountReading): Promise<Allowance> {
  const { owner } = run
  const asked = [{ owner, spender: channel.address }]
  const { delegations, latestLedger } = await readDelegations(await relay.deployment(), asked)
  const last = await lastLedgerOf(await relay.database(), channel.address)
  if (isLagging(Math.min(latestLedger, own.latestLedger), last)) {
    throw new LineError('balance-stale', 'the RPC lags behind the last payment')
  }
  const [delegation] = delegations
  if (!delegation) throw doubtful('delegation-revoked', 'there is no delegation')
  if (run.liveUntil !== delegation.live_until_ledger) {
    throw doubtful('manifest-invalid', 'the delegation is not the one of the manifest')
  }
  requireTime(relay, run, latestLedger)
  const allowance = openAllowance(channel, owner, delegation)
  if (!allowance) throw doubtful('delegation-revoked', 'the delegation cannot be opened')
  return allowance
}

/** @throws LineError `recipient-unregistered`; LedgerError */
export async function readPaymentKeys({ memory }: Relay, { owner, line, manifest }: RunLine): Promise<PaymentKeys> {
  const next = manifest.payouts.map(({ address }) => address)
  return await memory.keys.read(owner, line.address, next).catch((error: unknown) => {
    const isMissing = error instanceof WalletError && error.code === 'not-registered'
    throw isMissing ? doubtful('recipient-unregistered', 'the payee is not registered') : error
  })
}

/**
 * Before the first payment of a run from a channel, requires that the escrow covers all of its payouts: an employer who has delegated
 * too little must not end up with only some of them paid. Later an escrow can only fall short of a single payout.
 * @throws LineError `allowance-short`
 */
export async function requireCover(relay: Relay, row: Line, run: RunLine, allowance: Allowance): Promise<void> {
  const { manifest, amount, line } = run
  const short = doubtful('allowance-short', 'the escrow does not cover the payouts')
  if (amount > allowance.opening.value) throw short
  const db = await relay.database()
  const isOfChannel = and(eq(relayLines.job, row.job), eq(relayLines.spender, line.channel))
  if ((await db.$count(relayLines, and(isOfChannel, isNotNull(relayLines.sentAt)))) > 0) return
  const ofChannel = manifest.payouts.filter(({ channel }) => channel === line.channel)
  const lines = new Map(ofChannel.map((each) => [each.payout, each]))
  const { id, encryptedAmount } = payouts
  const isNamed = inArray(id, [...lines.keys()])
  const sealed = await db.select({ id, encryptedAmount }).from(payouts).where(isNamed)
  let total = 0n
  for (const { id, encryptedAmount } of sealed) {
    const each = lines.get(id)
    // A payout that has been paid or canceled has no seal. If a seal cannot be opened, only its own payout fails.
    if (!each || encryptedAmount === null || hashSeal(encryptedAmount) !== each.sealHash) continue
    total += await unsealPayout(relay.key, bindingOf(manifest, each), encryptedAmount).catch(() => 0n)
  }
  if (total > allowance.opening.value) throw short
}
