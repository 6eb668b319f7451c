import { and, eq, inArray } from 'drizzle-orm'
import { batches, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { countPayouts, holdBatches } from '../batch-progress.ts'
import { PAYOUT_MOVES, statusesBefore } from '../moves.ts'

/**
 * Cancels the payouts of a contractor that are not on their way yet. Runs inside the SQL transaction that deactivates or
 * removes the contractor, and after the statement that does: under the lock of that row no new payout can appear.
 * Resolves to how many there were.
 */
export async function cancelPayouts(
  tx: Database,
  contractor: { id: string; organisation: string },
  { actor, now }: { actor: Actor; now: Date },
): Promise<number> {
  const waiting = and(
    eq(payouts.contractor, contractor.id),
    inArray(payouts.status, statusesBefore(PAYOUT_MOVES, 'canceled')),
  )
  const held = await holdBatches(
    tx,
    inArray(batches.id, tx.select({ batch: payouts.batch }).from(payouts).where(waiting)),
  )
  const canceled = await tx
    .update(payouts)
    .set({ status: 'canceled' })
    .where(waiting)
    .returning({ id: payouts.id, batch: payouts.batch })
  const entries = canceled.map(({ id }) => ({
    organisation: contractor.organisation,
    actor,
    action: 'payout.canceled' as const,
    subject: { kind: 'payout' as const, id },
  }))
  await recordAudit(tx, now, ...entries)
  // One batch pays a contractor once.
  const left = held.filter(({ id }) => canceled.some(({ batch }) => batch === id))
  await countPayouts(tx, left, { payouts: -1 }, { actor, now })
  return canceled.length
}
