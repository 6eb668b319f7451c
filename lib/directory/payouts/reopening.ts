import { and, eq } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { hasPayout, lockBatches } from '../batches/progress.ts'

/**
 * Makes a payout of a run `ready` again after a transfer that did not pay it: the run goes on, and its next transfer claims it.
 * Call it in the SQL transaction that settles the transfer.
 */
export async function reopenPayout(tx: Database, { id, payout }: { id: string; payout: string | null }): Promise<void> {
  if (payout === null) return
  const isPayout = eq(payouts.id, payout)
  await lockBatches(tx, hasPayout(tx, isPayout))
  await tx
    .update(payouts)
    .set({ status: 'ready', transfer: null, error: null })
    .where(and(isPayout, eq(payouts.transfer, id), eq(payouts.status, 'pending')))
}
