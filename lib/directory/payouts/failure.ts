import { and, eq } from 'drizzle-orm'
import { type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { RELAY, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { countPayouts, hasPayout, lockBatches } from '../batches/progress.ts'

/**
 * Fails a payout that a run could not pay, and for which no transfer was recorded. A payout that another transfer pays,
 * or that was canceled, keeps its state. Call it in the SQL transaction that ends the run's item.
 */
export async function failPayout(
  { db: tx, now }: { db: Database; now: Date },
  { id, error }: { id: string; error: string },
): Promise<void> {
  const isPayout = eq(payouts.id, id)
  const locked = await lockBatches(tx, hasPayout(tx, isPayout))
  const move = async (from: PayoutStatus) => {
    const [failed] = await tx
      .update(payouts)
      .set({ status: 'failed', error })
      .where(and(isPayout, eq(payouts.status, from)))
      .returning({ organisation: payouts.organisation })
    return failed
  }
  // A payout that has failed before is counted already.
  if (await move('failed')) return
  const failed = await move('ready')
  if (!failed) return
  await recordAudit(tx, now, { ...failed, actor: RELAY, action: 'payout.failed', subject: id })
  await countPayouts(tx, locked, { failed: 1, sending: true }, { actor: RELAY, now })
}
