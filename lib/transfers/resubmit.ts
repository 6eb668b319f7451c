import { and, eq, gt, inArray, isNull, lt, or, sql } from 'drizzle-orm'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import type { ReadAccount } from '#lib/stellar/account.ts'
import type { Network } from '#lib/stellar/network.ts'
import { isContested, send } from '#lib/stellar/transaction.ts'
import { isLagging, type LedgerView } from '#lib/stellar/view.ts'
import type { Envelope, RecordedTransfer } from './rows.ts'

/** What tracking a transfer needs: no key, and nothing of a single transfer. */
export interface TrackingContext {
  network: Network
  /** opens the database for each use, so that an outage only causes a wait */
  database: () => Promise<Database>
  /** reads accounts; combines concurrent reads into one call */
  readAccount: ReadAccount
  view: LedgerView
  /** whether the RPC serves another network: then it proves of no transfer that it was not applied */
  isForeignNetwork: () => Promise<boolean>
  now: () => Date
}

/** A transfer that no process has looked up for this many ledgers is not tracked: its process exited, or lost the database. */
export const FORGOTTEN_LEDGERS = 3

/** After this many ledgers, an open transfer is looked up and submitted less often. */
const CALM_LEDGERS = 4

/** Ledgers between two lookups or submissions of a transfer that has been open for so many: at most three, or it looks forgotten. */
export const strideOf = (ledgersOpen: number): number =>
  Math.min(FORGOTTEN_LEDGERS, 1 + Math.max(0, Math.floor(ledgersOpen / CALM_LEDGERS)))

/**
 * The result of an attempt to submit an envelope. `used`: none can be submitted, since the account has used the sequence
 * number. `stuck`: none can be submitted until the account's number is the previous one.
 */
export type Attempt = 'submitted' | 'refused' | 'used' | 'stuck'

/**
 * Submits an envelope again unchanged, at most once per ledger, while the account's sequence number is the one before: another
 * transaction may have used the number, and then no envelope can apply any more.
 * @param ledger the ledger up to which none of them was applied
 */
export async function resubmit(context: TrackingContext, recorded: RecordedTransfer, ledger: number): Promise<Attempt> {
  const { view, readAccount } = context
  const { transfer, envelopes: competing } = recorded
  const since = ledger - strideOf(ledger - transfer.recordedLedger)
  const isSent = competing.some(({ sentLedger }) => (view.hint(sentLedger) ?? -1) > since)
  if (isSent) return 'submitted'
  const { account } = await readAccount(transfer.account)
  if (account && account.seqNum >= transfer.sequenceNumber) return 'used'
  const envelope = pickEnvelope(competing)
  if (account?.seqNum !== transfer.sequenceNumber - 1n || !envelope) return 'stuck'
  return await submitEnvelope(context, envelope, Math.max(view.latestLedger(), ledger))
}

/**
 * Submits an envelope and records the network's response, unless a process has submitted it since `ledger` closed: the
 * conditional UPDATE is the claim, so that the network gets it at most once per ledger.
 */
export async function submitEnvelope(
  { network, database, view, now }: TrackingContext,
  { innerHash, outerHash, transfer, resultCode: lastCode, refusedLedger: lastRefused }: Envelope,
  ledger: number,
): Promise<Attempt> {
  const db = await database()
  // The outer hash distinguishes an envelope from the same transaction with renewed signatures.
  const isOuter = outerHash === null ? isNull(envelopes.outerHash) : eq(envelopes.outerHash, outerHash)
  const isIt = and(eq(envelopes.innerHash, innerHash), isOuter)
  // A process that lags leaves the envelope to the process that has submitted it in a later ledger.
  const { sentLedger } = envelopes
  const isDue = or(isNull(sentLedger), lt(sentLedger, ledger), gt(sentLedger, view.aheadOf(ledger)))
  // The lock keeps the transfer from being settled as never submitted.
  const isOpen = and(eq(transfers.id, transfer), eq(transfers.status, 'open'))
  const open = db.select({ id: transfers.id }).from(transfers).where(isOpen).for('share')
  const at = now()
  const firstSentAt = sql`coalesce(${envelopes.firstSentAt}, ${at.toISOString()}::timestamptz)`
  const [claimed] = await db
    .update(envelopes)
    // Until its response, this submission is neither refused nor a repeated refusal.
    .set({ sentLedger: ledger, lastSentAt: at, firstSentAt, resultCode: null })
    .where(and(isIt, isDue, inArray(envelopes.transfer, open)))
    .returning({ signed: envelopes.signed })
  if (!claimed?.signed) return 'submitted'
  const sent = await send(network, claimed.signed)
  // A ledger that closed before the submission cannot include it. A number far above the known ones means nothing.
  const { latestLedger = ledger, latestLedgerCloseTime } = sent
  const isNewer = isLagging(ledger, latestLedger)
  if (isNewer && latestLedgerCloseTime !== undefined) view.observe(latestLedger, latestLedgerCloseTime)
  const newestLedger = isNewer ? latestLedger : ledger
  const resultCode = sent.kind === 'error' ? sent.resultCode : null
  const firstRefused = (lastCode === null ? undefined : view.hint(lastRefused)) ?? newestLedger
  const refusedLedger = resultCode === null ? null : firstRefused
  const [noted] = await db
    .update(envelopes)
    .set({ sentLedger: newestLedger, resultCode, refusedLedger })
    // A slow response says nothing about a later submission.
    .where(and(isIt, eq(sentLedger, ledger)))
    .returning({ innerHash: envelopes.innerHash })
  if (!noted || resultCode === null) return 'submitted'
  log('info', 'envelope refused', { hash: innerHash, code: resultCode })
  return 'refused'
}

/** The envelope with the highest bid, of those that the network hasn't refused if there are any. */
function pickEnvelope(competing: readonly Envelope[]): Envelope | undefined {
  const isRefused = ({ resultCode }: Envelope) => Number(resultCode !== null)
  const [first] = competing
    .filter(({ isSendable }) => isSendable)
    .toSorted((one, other) => isRefused(one) - isRefused(other) || Number(other.bid - one.bid))
  return first
}

/** A contested refusal, which may mean that the network has the transaction or a rival, is trusted when repeated so much later. */
const CONTESTED_LEDGERS = 2

/**
 * The network's refusal of an envelope, if it is certain. `hasRival`: another envelope may still make the transfer. `isIdle`: another
 * envelope is resubmitted in its place. `isStuck`: none of the transfer can be submitted.
 */
export function refusalOf(innerHash: string, competing: readonly Envelope[], view: LedgerView, isStuck = false) {
  const envelope = competing.find((one) => one.innerHash === innerHash)
  if (!envelope || envelope.resultCode === null) return undefined
  const { resultCode, sentLedger, refusedLedger } = envelope
  const hasRival = competing.some((one) => one !== envelope && one.isSendable && one.resultCode === null)
  const isIdle = pickEnvelope(competing) !== envelope
  // Nothing repeats the refusal of an envelope that isn't resubmitted.
  const repeated = isIdle || isStuck ? view.latestLedger() : view.hint(sentLedger)
  // A ledger that this process doesn't know yet: another process has just received the refusal.
  const since = view.hint(refusedLedger)
  const isRepeated = since !== undefined && repeated !== undefined && repeated >= since + CONTESTED_LEDGERS
  return !isContested(resultCode) || isRepeated ? { resultCode, sentLedger, hasRival, isIdle } : undefined
}
