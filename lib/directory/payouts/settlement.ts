import { and, eq, inArray, sql } from 'drizzle-orm'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { countPayouts, hasPayout, lockBatches, PAYOUT_MOVES } from '../batches/progress.ts'

/** The outcome of a transfer for its payout: `pending` if the transfer is `unknown`. */
export type PayoutOutcome =
  | { status: 'paid'; txHash: string }
  | { status: 'failed'; error: string }
  | { status: 'pending'; error: string }

/** The actor of a settlement in the audit log. */
export const SETTLEMENT: Actor = { kind: 'service', sub: 'settlement' }

/**
 * Gives a payout the outcome of the transfer that last claimed it, and updates counters, batch and contractor. Call it
 * inside the SQL transaction that settles the transfer. A payout whose transfer is `unknown` stays `pending` until its
 * employer cancels it: sending it again could pay it twice.
 * @param settled.payout, settled.transfer ids
 */
export async function settlePayout(
  { db: tx, now }: { db: Database; now: Date },
  { payout, transfer, outcome }: { payout: string; transfer: string; outcome: PayoutOutcome },
): Promise<void> {
  const { status } = outcome
  if (status === 'paid') await markContractorPaid(tx, payout, now)
  const [batch] = await lockBatches(tx, hasPayout(tx, eq(payouts.id, payout)))
  if (!batch) return
  const from = status === 'pending' ? [status] : statusesBefore(PAYOUT_MOVES, status)
  const [updated] = await tx
    .update(payouts)
    .set({ error: null, ...outcome, ...(status === 'paid' && { paidAt: now }) })
    .where(and(eq(payouts.id, payout), eq(payouts.transfer, transfer), inArray(payouts.status, from)))
    .returning({ id: payouts.id })
  if (!updated || status === 'pending') return
  await recordAudit(tx, now, {
    organisation: batch.organisation,
    actor: SETTLEMENT,
    action: `payout.${status}`,
    subject: payout,
    detail: { transfer },
  })
  await countPayouts(tx, [batch], status === 'paid' ? { settled: 1 } : { failed: 1 }, { actor: SETTLEMENT, now })
}

async function markContractorPaid(tx: Database, payout: string, now: Date): Promise<void> {
  const contractor = tx.select({ id: payouts.contractor }).from(payouts).where(eq(payouts.id, payout))
  await tx
    .update(contractors)
    .set({ lastPaidAt: sql`greatest(${contractors.lastPaidAt}, ${now.toISOString()}::timestamptz)` })
    .where(inArray(contractors.id, contractor))
}
