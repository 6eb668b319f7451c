import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { contractors, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { countPayouts, type HeldBatch, holdBatches } from '../batch-progress.ts'
import { PAYOUT_MOVES, statusesBefore } from '../moves.ts'
import { batchOf } from './claims.ts'

/** What became of a transfer, as its payout shows it. */
export type PayoutOutcome = { status: 'paid'; txHash: string } | { status: 'failed'; error: string }

const ACTOR: Actor = { kind: 'service', sub: 'settlement' }

/**
 * Gives a payout the outcome of a transfer that claimed it; counters, batch and contractor follow. What is paid stays
 * paid, whichever of its transfers got to the ledger; it has failed only if the last that claimed it has. Runs inside
 * the SQL transaction that settles the transfer, or that notes that the network will not have it.
 * @param claim the payout's id and the transfer's inner hash
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
  else await fail(tx, batch, claim, outcome.error, now)
}

async function pay(
  tx: Database,
  batch: HeldBatch,
  { payout, transfer }: { payout: string; transfer: string },
  txHash: string,
  now: Date,
): Promise<void> {
  for (const from of statusesBefore(PAYOUT_MOVES, 'paid')) {
    const condition = and(eq(payouts.id, payout), eq(payouts.status, from))
    const paid = { status: 'paid' as const, transfer, txHash, paidAt: now, error: null }
    if (!(await move(tx, batch, condition, paid, now))) continue
    const counts = { settled: 1, failed: from === 'failed' ? -1 : 0 }
    return await countPayouts(tx, [batch], counts, { actor: ACTOR, now })
  }
}

async function fail(
  tx: Database,
  batch: HeldBatch,
  { payout, transfer }: { payout: string; transfer: string },
  error: string,
  now: Date,
): Promise<void> {
  const before = inArray(payouts.status, statusesBefore(PAYOUT_MOVES, 'failed'))
  const condition = and(eq(payouts.id, payout), before, eq(payouts.transfer, transfer))
  if (!(await move(tx, batch, condition, { status: 'failed', error }, now))) return
  await countPayouts(tx, [batch], { failed: 1 }, { actor: ACTOR, now })
}

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
