import { inArray, type SQL, sql } from 'drizzle-orm'
import { type BatchStatus, batches, type PayoutStatus } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'

/** The statuses to which a batch may move, from each status. */
export const BATCH_MOVES = {
  draft: ['ready'],
  ready: ['started'],
  started: ['completed', 'failed'],
  // A payout is sent again, or all that failed are canceled.
  failed: ['started', 'completed'],
  completed: [],
} as const satisfies Record<BatchStatus, readonly BatchStatus[]>

/** The statuses to which a payout may move, from each status. */
export const PAYOUT_MOVES = {
  draft: ['ready', 'canceled'],
  ready: ['pending', 'canceled'],
  // Only the employer ends a payout whose transfer is `unknown`.
  pending: ['paid', 'failed', 'canceled'],
  // A payout is sent again.
  failed: ['pending', 'canceled'],
  paid: [],
  canceled: [],
} as const satisfies Record<PayoutStatus, readonly PayoutStatus[]>

/**
 * A batch whose row this SQL transaction has locked.
 *
 * Every SQL transaction that moves payouts takes its locks in this order, several of a kind by id, so that no two wait
 * for each other: transfer, contractor, batch, payout, quota of the account, everybody's quota, float. A payout moves
 * only under the lock of its batch.
 */
interface HeldBatch {
  id: string
  organisation: string
  status: BatchStatus
}

/** Locks the batches for which `condition` holds. */
export async function holdBatches(tx: Database, condition: SQL | undefined): Promise<HeldBatch[]> {
  return await tx
    .select({ id: batches.id, organisation: batches.organisation, status: batches.status })
    .from(batches)
    .where(condition)
    .orderBy(batches.id)
    .for('no key update')
}

/** How much the move of one payout changes the counters of its batch. */
interface PayoutCounts {
  payouts?: number
  settled?: number
  failed?: number
  /** one of its payouts is on its way to the ledger */
  sending?: boolean
}

/**
 * Adds the same numbers to the counters of all held batches, and sets the status that follows from the counters:
 * `started` with the first payout sent, `completed` when every payout that is not canceled is paid, `failed` when no
 * payout is left to wait for and some have failed or all are canceled, and `started` again when a failed payout is sent
 * again.
 */
export async function countPayouts(
  tx: Database,
  held: readonly HeldBatch[],
  by: PayoutCounts,
  { actor, now }: { actor: Actor; now: Date },
): Promise<void> {
  const ids = held.map(({ id }) => id)
  if (ids.length === 0) return
  const payoutCount = sql<number>`${batches.payoutCount} + ${by.payouts ?? 0}`
  const settledCount = sql<number>`${batches.settledCount} + ${by.settled ?? 0}`
  const failedCount = sql<number>`${batches.failedCount} + ${by.failed ?? 0}`
  const waiting = by.sending ? sql`${batches.status} = 'draft'` : sql`${batches.status} in ('draft', 'ready')`
  const completed = sql`(not ${waiting} and ${payoutCount} > 0 and ${settledCount} = ${payoutCount})`
  const moment = sql`${now.toISOString()}::timestamptz`
  const moved = await tx
    .update(batches)
    .set({
      payoutCount,
      settledCount,
      failedCount,
      status: sql`case when ${waiting} then ${batches.status}
        when ${completed} then 'completed'
        when ${payoutCount} = 0 then 'failed'
        when ${failedCount} > 0 and ${settledCount} + ${failedCount} = ${payoutCount} then 'failed'
        else 'started' end`,
      startedAt: sql`case when ${waiting} then null else coalesce(${batches.startedAt}, ${moment}) end`,
      completedAt: sql`case when ${completed} then coalesce(${batches.completedAt}, ${moment}) end`,
    })
    .where(inArray(batches.id, ids))
    .returning({ id: batches.id, status: batches.status })
  const before = new Map(held.map((batch) => [batch.id, batch]))
  const changes = moved.flatMap(({ id, status }) => {
    const batch = before.get(id)
    const changed = batch !== undefined && batch.status !== status
    if (!changed || (status !== 'started' && status !== 'completed' && status !== 'failed')) return []
    return [{ organisation: batch.organisation, actor, action: `batch.${status}` as const, subject: id }]
  })
  await recordAudit(tx, now, ...changes)
}
