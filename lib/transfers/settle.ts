import { and, eq, inArray, sql } from 'drizzle-orm'
import { FREQUENT_ACTOR } from '#drizzle/schema/audit.ts'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { countPayouts, hasPayout, lockBatches, PAYOUT_MOVES } from '#lib/directory/batches/progress.ts'
import { reopenPayout } from '#lib/directory/payouts/reopening.ts'
import { removeSeals } from '#lib/directory/payouts/seals.ts'
import { countSettled } from './counts.ts'
import type { Decision } from './decide.ts'
import { type ClosedJob, releaseUnsent, settleJob, settleLine } from './line.ts'
import { claimOf, release } from './quota.ts'
import { findEnvelopes, lockTransfer, setOf } from './rows.ts'
import { lockForStop, mayHaveLostNumber, stopIfUnexplained } from './stop.ts'

const ACTOR: Actor = { kind: 'service', sub: FREQUENT_ACTOR }

/**
 * Settles an open transfer in one SQL transaction. Of several callers one settles it, and all get the same row.
 * Undefined, and nothing changes, if `lookedUp` isn't the transfer's current set of envelopes: one that was recorded
 * since the lookup may be the one that was applied. The quota follows the payout because every SQL transaction takes its
 * locks in the order of `lockBatches`.
 */
export function settle(
  db: Database,
  id: string,
  { decision, lookedUp, now }: { decision: Decision; lookedUp: string; now: Date },
): Promise<Transfer | undefined> {
  return transact(db, async (tx) => {
    const end = columnsOf(decision)
    if (mayHaveLostNumber(end)) await lockForStop(tx)
    const locked = await lockTransfer(tx, id)
    if (!locked) throw new Error('a transfer that was never recorded cannot be settled')
    if (locked.status !== 'open') return locked
    const competing = await findEnvelopes(tx, [id])
    if (setOf(competing) !== lookedUp) return undefined

    // The transfer.
    const ended = { ...end, settledAt: now }
    const [transfer] = await tx.update(transfers).set(ended).where(eq(transfers.id, id)).returning()
    if (!transfer) throw new Error('the update of a locked transfer returned no row')

    await stopIfUnexplained(tx, transfer, now)
    const closed = await settleOwners(tx, transfer, now)
    await releaseUnsent(tx, closed)

    // The quota, the daily budget and the float. If the end is unknown, the ledger may have charged the whole bid.
    if (transfer.sponsor !== null) {
      const charged = transfer.status === 'unknown' ? transfer.bid : (transfer.feeCharged ?? 0n)
      // A relay's line that expired without ever being submitted doesn't count against its user's transfers.
      // A run's line does not count by its transfers: the run returns what it has not used when it ends.
      const isCounted = transfer.quotaAccount !== null && transfer.kind !== 'delegated'
      const isUnsent = transfer.status === 'expired' && competing.every(({ firstSentAt }) => firstSentAt === null)
      await release(tx, claimOf(transfer, isCounted && isUnsent ? 1 : 0), charged)
    }
    await countSettled(tx, transfer)
    return transfer
  })
}

/**
 * Settles the transfer's line, payout, contractor, batch, job and channel, with one entry in the audit log: the payout's, if it ended
 * one. Resolves to the jobs that it has closed, for `releaseUnsent`.
 */
export async function settleOwners(tx: Database, transfer: Transfer, now: Date): Promise<ClosedJob[]> {
  const isWaiting = await settleLine(tx, transfer, now)
  if (isWaiting) await reopenPayout(tx, transfer)
  if (isWaiting || !(await settlePayout(tx, transfer, now))) {
    const { id, organisation, applied, status } = transfer
    const entry = { organisation: organisation ?? undefined, actor: ACTOR, subject: applied ?? id }
    await recordAudit(tx, now, { ...entry, action: 'transfer.settled', detail: { transfer: id, status } })
  }
  return await settleJob(tx, transfer, now)
}

/**
 * Sets the outcome of a settled transfer on its payout, contractor and batch, and records it in the audit log. Resolves to
 * false, without an entry, if there is no payout, if its outcome stays unknown, or if another transfer pays it now.
 */
export async function settlePayout(tx: Database, transfer: Transfer, now: Date): Promise<boolean> {
  const { id, payout } = transfer
  if (payout === null) return false
  const outcome = payoutOutcome(transfer)
  const isPayout = eq(payouts.id, payout)
  if (outcome.status === 'paid') {
    const lastPaidAt = sql`greatest(${contractors.lastPaidAt}, ${now.toISOString()}::timestamptz)`
    const isPayee = inArray(contractors.id, tx.select({ id: payouts.contractor }).from(payouts).where(isPayout))
    await tx.update(contractors).set({ lastPaidAt }).where(isPayee)
  }
  const locked = await lockBatches(tx, hasPayout(tx, isPayout))
  // A payout whose transfer is unknown stays pending.
  const from = outcome.status === 'pending' ? ['pending' as const] : statusesBefore(PAYOUT_MOVES, outcome.status)
  const [moved] = await tx
    .update(payouts)
    .set({ error: null, ...outcome, ...(outcome.status === 'paid' && { paidAt: now }) })
    .where(and(isPayout, eq(payouts.transfer, id), inArray(payouts.status, from)))
    .returning({ organisation: payouts.organisation, encryptedAmount: payouts.encryptedAmount })
  if (moved && outcome.status === 'paid') await removeSeals(tx, [{ ...moved, id: payout }])
  if (!moved || outcome.status === 'pending') return false
  const entry = { organisation: moved.organisation, actor: ACTOR, subject: payout, detail: { transfer: id } }
  await recordAudit(tx, now, { ...entry, action: `payout.${outcome.status}` })
  await countPayouts(tx, locked, outcome.status === 'paid' ? { settled: 1 } : { failed: 1 }, { actor: ACTOR, now })
  return true
}

/** The columns of a transfer that its end sets. Those of the ledger's record are null without one. */
export function columnsOf(decision: Decision) {
  const end = { hash: null, applied: null, ledger: null, appliedAt: null, contractError: null, feeCharged: null }
  if (!('record' in decision)) return { ...end, resultCode: null, ...decision }
  const { status, record, feeCharged } = decision
  const { hash, applied, ledger, closedAt, resultCode, contractError } = record
  return { status, hash, applied, ledger, appliedAt: new Date(closedAt * 1000), resultCode, contractError, feeCharged }
}

/** The state of a payout after its transfer. `pending`: only the employer can end a payout whose transfer is unknown. */
type PayoutOutcome = { status: 'paid'; txHash: string } | { status: 'failed' | 'pending'; error: string }

const LOST = 'the history of the ledger no longer shows whether the transfer was paid: ask the payee, then cancel it'

function payoutOutcome({ status, hash, resultCode, contractError }: Transfer): PayoutOutcome {
  if (status === 'succeeded' && hash) return { status: 'paid', txHash: hash }
  if (status === 'unknown') return { status: 'pending', error: LOST }
  if (status === 'expired' && resultCode !== null) {
    return { status: 'failed', error: 'another transaction of this account was applied: check whether it paid' }
  }
  if (status === 'expired') return { status: 'failed', error: 'the transfer expired before it reached the ledger' }
  const contract = contractError === null ? '' : `, contract error ${contractError}`
  return { status: 'failed', error: `the transfer failed on the ledger: ${resultCode}${contract}` }
}
