import { and, eq, inArray, lt } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { countPayouts, hasPayout, lockBatches } from '../batches/progress.ts'

/** The error of a payout that may have been paid before a restore, in a payment that nothing shows any more. */
const RESTORED_WITHOUT_HISTORY = 'restored-without-history'

/**
 * Makes every payout that was created before this moment and was not paid `pending` with an error, because the ledger's history
 * cannot show whether it was paid since the backup. Its employer cancels it, and instructs it again if it was not. Resolves to
 * their number.
 */
export async function suspendPayouts(
  { db: tx, now, actor }: { db: Database; now: Date; actor: Actor },
  before: Date,
): Promise<number> {
  const isOpen = and(inArray(payouts.status, ['draft', 'ready', 'failed']), lt(payouts.createdAt, before))
  const locked = await lockBatches(tx, hasPayout(tx, isOpen))
  let count = 0
  for (const batch of locked) {
    const isHere = and(isOpen, eq(payouts.batch, batch.id))
    const failed = await tx.$count(payouts, and(isHere, eq(payouts.status, 'failed')))
    const suspended = await tx
      .update(payouts)
      .set({ status: 'pending', transfer: null, error: RESTORED_WITHOUT_HISTORY })
      .where(isHere)
      .returning({ id: payouts.id })
    await countPayouts(tx, [batch], { failed: -failed, sending: true }, { actor, now })
    count += suspended.length
  }
  return count
}
