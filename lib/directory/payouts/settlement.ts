import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { contractors, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { countPayouts, type HeldBatch, holdBatches, PAYOUT_MOVES } from '../batch-progress.ts'
import { batchOf } from './claims.ts'

/** What became of a transfer, as its payout shows it: `pending` for a transfer that is `unknown`. */
export type PayoutOutcome =
  | { status: 'paid'; txHash: string }
  | { status: 'failed'; error: string }
  | { status: 'pending'; error: string }

const ACTOR: Actor = { kind: 'service', sub: 'settlement' }

/**
 * Gives a payout the outcome of the transfer that last claimed it; counters, batch and contractor follow. Runs inside the
 * SQL transaction that settles the transfer. A payout whose end is unknown stays `pending`, and only its employer can end
 * it: to send it again might pay it twice.
 * @param claim the ids of payout and transfer
 */
export async function settlePayout(
  tx: Database,
  claim: { payout: string; transfer: string },
  outcome: PayoutOutcome,
  now: Date,
): Promise<void> {
  if (outcome.status === 'paid') await markContractorPaid(tx, claim.payout, now)
  const [batch] = await holdBatches(tx, batchOf(tx, claim.payout))
  if (!batch) return
  if (outcome.status === 'paid') await pay(tx, batch, claim, outcome.txHash, now)
  else if (outcome.status === 'failed') await fail(tx, batch, claim, outcome.error, now)
  else await explain(tx, claim, outcome.error)
}

async function pay(
  tx: Database,
  batch: HeldBatch,
  { payout, transfer }: { payout: string; transfer: string },
  txHash: string,
  now: Date,
): Promise<void> {
  const condition = claimedBy(payout, transfer, statusesBefore(PAYOUT_MOVES, 'paid'))
  const paid = { status: 'paid' as const, txHash, paidAt: now, error: null }
  if (!(await move(tx, batch, condition, paid, now))) return
  await countPayouts(tx, [batch], { settled: 1 }, { actor: ACTOR, now })
}

async function fail(
  tx: Database,
  batch: HeldBatch,
  { payout, transfer }: { payout: string; transfer: string },
  error: string,
  now: Date,
): Promise<void> {
  const condition = claimedBy(payout, transfer, statusesBefore(PAYOUT_MOVES, 'failed'))
  if (!(await move(tx, batch, condition, { status: 'failed', error }, now))) return
  await countPayouts(tx, [batch], { failed: 1 }, { actor: ACTOR, now })
}

async function explain(
  tx: Database,
  { payout, transfer }: { payout: string; transfer: string },
  error: string,
): Promise<void> {
  await tx
    .update(payouts)
    .set({ error })
    .where(claimedBy(payout, transfer, ['pending']))
}

const claimedBy = (payout: string, transfer: string, statuses: PayoutStatus[]) =>
  and(eq(payouts.id, payout), eq(payouts.transfer, transfer), inArray(payouts.status, statuses))

async function move(
  tx: Database,
  batch: HeldBatch,
  condition: SQL | undefined,
  fields: Partial<typeof payouts.$inferInsert> & { status: 'paid' | 'failed' },
  now: Date,
): Promise<boolean> {
  const [moved] = await tx
    .update(payouts)
    .set(fields)
    .where(condition)
    .returning({ id: payouts.id, transfer: payouts.transfer })
  if (!moved) return false
  await recordAudit(tx, now, {
    organisation: batch.organisation,
    actor: ACTOR,
    action: `payout.${fields.status}`,
    subject: { kind: 'payout', id: moved.id },
    detail: { transfer: moved.transfer ?? '' },
  })
  return true
}

async function markContractorPaid(tx: Database, payout: string, now: Date): Promise<void> {
  const contractor = tx.select({ id: payouts.contractor }).from(payouts).where(eq(payouts.id, payout))
  await tx
    .update(contractors)
    .set({ lastPaidAt: sql`greatest(${contractors.lastPaidAt}, ${now.toISOString()}::timestamptz)` })
    .where(inArray(contractors.id, contractor))
}
