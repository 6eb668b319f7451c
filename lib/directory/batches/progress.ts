import { inArray, type SQL, sql } from 'drizzle-orm'
import { type BatchStatus, batches, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'

/** The statuses that a batch may move to, from each status. */
export const BATCH_MOVES = {
  draft: ['ready'],
  // A run may fail every payout before it pays one. A draft whose payouts were all paid before a restore is
  // completed at once.
  ready: ['started', 'completed', 'failed'],
  started: ['completed', 'failed'],
  // A payout is sent again, or every failed payout is canceled.
  failed: ['started', 'completed'],
  completed: [],
} as const satisfies Record<BatchStatus, readonly BatchStatus[]>

/** The statuses that a payout may move to, from each status. */
export const PAYOUT_MOVES = {
  // Only a release moves a draft to `pending`: after a restore, for a payment that the ledger shows.
  draft: ['ready', 'pending', 'canceled'],
  // A run fails a payout that it cannot pay, without a transfer.
  ready: ['pending', 'failed', 'canceled'],
  // A run's payout waits again after a transfer that did not pay it. Only the employer cancels a pending payout, and only if
  // its transfer is `unknown`.
  pending: ['paid', 'ready', 'failed', 'canceled'],
  // A failed payout may be sent again.
  failed: ['pending', 'canceled'],
  paid: [],
  canceled: [],
} as const satisfies Record<PayoutStatus, readonly PayoutStatus[]>

/**
 * A batch whose row this SQL transaction has locked.
 *
 * To avoid deadlocks, every SQL transaction that moves payouts takes its locks in this order, and several of a kind by
 * id: the stop of payments, transfer, line, contractor, batch, payout, job, channel, the account's quota, the daily budget, float,
 * counts of settled transfers. A payout moves only under the lock of its batch. A payment that was found on the ledger is the
 * exception: its payout is claimed before it is settled, which locks the contractor after the batch. `transact` retries a deadlock.
 */
interface LockedBatch {
  id: string
  organisation: string
  status: BatchStatus
}

export async function lockBatches(tx: Database, condition: SQL | undefined): Promise<LockedBatch[]> {
  return await tx
    .select({ id: batches.id, organisation: batches.organisation, status: batches.status })
    .from(batches)
    .where(condition)
    .orderBy(batches.id)
    .for('no key update')
}

/** The condition for the batches of the payouts that match `condition`. */
export function hasPayout(tx: Database, condition: SQL | undefined): SQL {
  return inArray(batches.id, tx.select({ batch: payouts.batch }).from(payouts).where(condition))
}

/** How one payout's move changes the counters of its batch. */
interface CounterChanges {
  payouts?: number
  settled?: number
  failed?: number
  /** a payout has become `pending`, a run has failed it, or it was paid as a draft: each starts a `ready` batch */
  sending?: boolean
}

/**
 * Adds the same changes to the counters of all locked batches and derives each status from them: `started` with the
 * first payout sent, `completed` when every payout that is not canceled is paid, `failed` when no payout is ready or
 * pending and some failed or all are canceled, and `started` again when a failed payout is resent.
 */
export async function countPayouts(
  tx: Database,
  locked: readonly LockedBatch[],
  changes: CounterChanges,
  { actor, now }: { actor: Actor; now: Date },
): Promise<void> {
  const ids = locked.map(({ id }) => id)
  if (ids.length === 0) return
  const payoutCount = sql<number>`${batches.payoutCount} + ${changes.payouts ?? 0}`
  const settledCount = sql<number>`${batches.settledCount} + ${changes.settled ?? 0}`
  const failedCount = sql<number>`${batches.failedCount} + ${changes.failed ?? 0}`
  const isUnsent = changes.sending ? sql`${batches.status} = 'draft'` : sql`${batches.status} in ('draft', 'ready')`
  const isCompleted = sql`(not ${isUnsent} and ${payoutCount} > 0 and ${settledCount} = ${payoutCount})`
  const isProgress = changes.sending || changes.settled !== undefined || (changes.failed ?? 0) > 0
  const moment = sql`${now.toISOString()}::timestamptz`
  const isFailure = (changes.failed ?? 0) > 0
  const updated = await tx
    .update(batches)
    .set({
      payoutCount,
      settledCount,
      failedCount,
      status: sql`case when ${isUnsent} then ${batches.status}
        when ${isCompleted} then 'completed'
        when ${payoutCount} = 0 then 'failed'
        when ${failedCount} > 0 and ${settledCount} + ${failedCount} = ${payoutCount} then 'failed'
        else 'started' end`,
      ...(isProgress && { progressedAt: now }),
      startedAt: sql`case when ${isUnsent} then null else coalesce(${batches.startedAt}, ${moment}) end`,
      // An acknowledgement covers failures up to `failed_at`: a new one is later, even if this process's clock is behind.
      ...(isFailure && { failedAt: sql`greatest(${moment}, ${batches.failedAt} + interval '1 millisecond')` }),
      completedAt: sql`case when ${isCompleted} then coalesce(${batches.completedAt}, ${moment}) end`,
    })
    .where(inArray(batches.id, ids))
    .returning({ id: batches.id, status: batches.status })
  const before = new Map(locked.map((batch) => [batch.id, batch]))
  const entries = updated.flatMap(({ id, status }) => {
    const batch = before.get(id)
    const hasMoved = batch !== undefined && batch.status !== status
    if (!hasMoved || (status !== 'started' && status !== 'completed' && status !== 'failed')) return []
    return [{ organisation: batch.organisation, actor, action: `batch.${status}` as const, subject: id }]
  })
  await recordAudit(tx, now, ...entries)
}
