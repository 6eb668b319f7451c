import { and, eq, inArray, isNotNull, isNull, ne, or } from 'drizzle-orm'
import { type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { countPayouts, hasPayout, lockBatches, PAYOUT_MOVES } from '../batches/progress.ts'
import type { EmployerContext } from '../context.ts'
import { isId } from '../ids.ts'
import { SPONSOR } from './claims.ts'
import { removeSeals } from './seals.ts'

/**
 * Cancels a `draft`, `ready` or `failed` payout. Also cancels a `pending` payout with an error: its transfer is
 * `unknown` and its outcome will never be known, so the employer must check the account first.
 * @throws Refusal `payout-not-found`; `payout-sent` for a payout that is pending, paid or canceled
 */
export async function cancelPayout({ db, employer, now }: EmployerContext, id: string): Promise<{ id: string }> {
  if (!isId(id)) throw payoutNotFound()
  const { organisation, actor } = employer
  const isOwn = and(eq(payouts.id, id), eq(payouts.organisation, organisation))
  return await transactFor(db, organisation, async (tx) => {
    const locked = await lockBatches(tx, hasPayout(tx, isOwn))
    const [payout] = await tx.select({ status: payouts.status }).from(payouts).where(isOwn).for('update')
    if (!payout) throw payoutNotFound()
    const isCancelable = or(ne(payouts.status, 'pending'), isNotNull(payouts.error))
    const [canceled] = await tx
      .update(payouts)
      .set({ status: 'canceled', error: null })
      .where(and(isOwn, inArray(payouts.status, statusesBefore(PAYOUT_MOVES, 'canceled')), isCancelable))
      .returning({ id: payouts.id, encryptedAmount: payouts.encryptedAmount })
    if (!canceled) throw new Refusal('payout-sent', `payout is ${payout.status}`)
    await removeSeals(tx, [canceled])
    await recordAudit(tx, now, { ...employer, action: 'payout.canceled', subject: id })
    await countPayouts(tx, locked, { payouts: -1, failed: payout.status === 'failed' ? -1 : 0 }, { actor, now })
    return { id }
  })
}

/**
 * Notes on a payout that the ledger shows a payment for it, although it is canceled or already paid. It keeps its status. Call it in the SQL transaction that records the payment. Resolves to whether it was noted.
 */
export async function noteFoundPayment(
  { db: tx, now }: { db: Database; now: Date },
  { id, transfer, txHash }: { id: string; transfer: string; txHash: string },
): Promise<boolean> {
  await lockBatches(tx, hasPayout(tx, eq(payouts.id, id)))
  const isCanceled = eq(payouts.status, 'canceled')
  const notes = [
    {
      columns: { txHash, transfer, error: 'paid although canceled: the ledger shows the payment' },
      condition: and(isCanceled, isNull(payouts.txHash)),
    },
    {
      columns: { error: `paid twice: the ledger also shows ${txHash}` },
      condition: or(isCanceled, eq(payouts.status, 'paid')),
    },
  ]
  for (const { columns, condition } of notes) {
    const [noted] = await tx
      .update(payouts)
      .set(columns)
      .where(and(eq(payouts.id, id), condition))
      .returning({ organisation: payouts.organisation })
    if (!noted) continue
    const entry = { organisation: noted.organisation, actor: SPONSOR, subject: id, detail: { transfer } }
    await recordAudit(tx, now, { ...entry, action: 'payout.found-paid' })
    return true
  }
  return false
}

const payoutNotFound = () => new Refusal('payout-not-found')

/** A contractor's payouts in these statuses are canceled with it. A `failed` one may still be sent again. */
const UNSENT = ['draft', 'ready'] as const satisfies PayoutStatus[]

/**
 * Cancels the `draft` and `ready` payouts of a contractor. Call it inside the SQL transaction that deactivates or
 * removes the contractor, after that UPDATE: while its row is locked, no new payout can be inserted.
 */
export async function cancelPayouts(
  tx: Database,
  contractor: { id: string; organisation: string },
  { actor, now }: { actor: Actor; now: Date },
): Promise<void> {
  const isUnsent = and(eq(payouts.contractor, contractor.id), inArray(payouts.status, UNSENT))
  const locked = await lockBatches(tx, hasPayout(tx, isUnsent))
  const canceled = await tx
    .update(payouts)
    .set({ status: 'canceled' })
    .where(isUnsent)
    .returning({ id: payouts.id, batch: payouts.batch, encryptedAmount: payouts.encryptedAmount })
  await removeSeals(tx, canceled)
  const entry = { organisation: contractor.organisation, actor, action: 'payout.canceled' as const }
  await recordAudit(tx, now, ...canceled.map(({ id }) => ({ ...entry, subject: id })))
  // A batch has at most one payout per contractor that is not canceled, so each of these batches counts one less.
  const affected = locked.filter(({ id }) => canceled.some(({ batch }) => batch === id))
  await countPayouts(tx, affected, { payouts: -1 }, { actor, now })
}
