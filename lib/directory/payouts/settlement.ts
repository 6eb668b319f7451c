import { and, eq, inArray, sql } from 'drizzle-orm'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { countPayouts, holdBatches, PAYOUT_MOVES } from '../batch-progress.ts'
import { batchOf } from './claims.ts'

/** The end of a transfer, as its payout shows it: `pending` for a transfer that is `unknown`. */
export type PayoutOutcome =
  | { status: 'paid'; txHash: string }
  | { status: 'failed'; error: string }
  | { status: 'pending'; error: string }

/** Who settles, in the audit log. */
export const SETTLEMENT: Actor = { kind: 'service', sub: 'settlement' }

/**
 * Gives a payout the outcome of the transfer that last claimed it; counters, batch and contractor follow. Runs inside
 * the SQL transaction that settles the transfer. A payout whose end is unknown stays `pending`, and only its employer
 * can end it: to send it again might pay it twice.
 * @param settled.payout, settled.transfer their ids
 */
export async function settlePayout(
  { db: tx, now }: { db: Database; now: Date },
  { payout, transfer, outcome }: { payout: string; transfer: string; outcome: PayoutOutcome },
): Promise<void> {
  const { status } = outcome
  if (status === 'paid') await markContractorPaid(tx, payout, now)
  const [batch] = await holdBatches(tx, batchOf(tx, payout))
  if (!batch) return
  const from = status === 'pending' ? [status] : statusesBefore(PAYOUT_MOVES, status)
  const [moved] = await tx
    .update(payouts)
    .set({ error: null, ...outcome, ...(status === 'paid' && { paidAt: now }) })
    .where(and(eq(payouts.id, payout), eq(payouts.transfer, transfer), inArray(payouts.status, from)))
    .returning({ id: payouts.id })
  if (!moved || status === 'pending') return
  const { organisation } = batch
  const told = {
    organisation,
    actor: SETTLEMENT,
    action: `payout.${status}` as const,
    subject: payout,
    detail: { transfer },
  }
  await recordAudit(tx, now, told)
  await countPayouts(tx, [batch], status === 'paid' ? { settled: 1 } : { failed: 1 }, { actor: SETTLEMENT, now })
}

async function markContractorPaid(tx: Database, payout: string, now: Date): Promise<void> {
  const contractor = tx.select({ id: payouts.contractor }).from(payouts).where(eq(payouts.id, payout))
  await tx
    .update(contractors)
    .set({ lastPaidAt: sql`greatest(${contractors.lastPaidAt}, ${now.toISOString()}::timestamptz)` })
    .where(inArray(contractors.id, contractor))
}
