import { and, eq, inArray, isNotNull, ne, or } from 'drizzle-orm'
import { batches, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { countPayouts, holdBatches, PAYOUT_MOVES } from '../batch-progress.ts'
import { isId } from '../ids.ts'
import type { EmployerContext } from '../user.ts'

/**
 * Cancels a payout that is not on its way: a `draft`, a `ready` or a `failed` one. A `pending` payout with an error can
 * be cancelled too: its transfer is `unknown` for good, and the employer has looked at the account.
 * @throws Refusal `payout-not-found`; `payout-sent` for a payout that is on its way, paid or canceled
 */
export async function cancelPayout({ db, employer, now }: EmployerContext, id: string): Promise<{ id: string }> {
  if (!isId(id)) throw payoutNotFound()
  const { organisation, actor } = employer
  const own = and(eq(payouts.id, id), eq(payouts.organisation, organisation))
  return await transactFor(db, organisation, async (tx) => {
    const held = await holdBatches(
      tx,
      inArray(batches.id, tx.select({ batch: payouts.batch }).from(payouts).where(own)),
    )
    const [payout] = await tx.select({ status: payouts.status }).from(payouts).where(own).for('update')
    if (!payout) throw payoutNotFound()
    const canEnd = or(ne(payouts.status, 'pending'), isNotNull(payouts.error))
    const [canceled] = await tx
      .update(payouts)
      .set({ status: 'canceled', error: null })
      .where(and(own, inArray(payouts.status, statusesBefore(PAYOUT_MOVES, 'canceled')), canEnd))
      .returning({ id: payouts.id })
    if (!canceled) {
      const state = payout.status === 'pending' ? 'on its way' : payout.status
      throw new Refusal('payout-sent', `payout is ${state}`)
    }
    await recordAudit(tx, now, { ...employer, action: 'payout.canceled', subject: id })
    await countPayouts(tx, held, { payouts: -1, failed: payout.status === 'failed' ? -1 : 0 }, { actor, now })
    return { id }
  })
}

const payoutNotFound = () => new Refusal('payout-not-found', 'payout not found')

/** Payouts in these statuses end with their contractor. A `failed` one stays, because it may still be sent again. */
const NOT_SENT = ['draft', 'ready'] as const satisfies PayoutStatus[]

/**
 * Cancels the `draft` and `ready` payouts of a contractor. Runs inside the SQL transaction that deactivates or
 * removes the contractor, after the statement that does so: while that row is locked, no new payout can appear.
 * Resolves to how many payouts it canceled.
 */
export async function cancelPayouts(
  tx: Database,
  contractor: { id: string; organisation: string },
  { actor, now }: { actor: Actor; now: Date },
): Promise<number> {
  const waiting = and(eq(payouts.contractor, contractor.id), inArray(payouts.status, NOT_SENT))
  const held = await holdBatches(
    tx,
    inArray(batches.id, tx.select({ batch: payouts.batch }).from(payouts).where(waiting)),
  )
  const canceled = await tx
    .update(payouts)
    .set({ status: 'canceled' })
    .where(waiting)
    .returning({ id: payouts.id, batch: payouts.batch })
  const entry = { organisation: contractor.organisation, actor, action: 'payout.canceled' as const }
  await recordAudit(tx, now, ...canceled.map(({ id }) => ({ ...entry, subject: id })))
  // A contractor has at most one payout in a batch that is not canceled, so each batch counts one less.
  const left = held.filter(({ id }) => canceled.some(({ batch }) => batch === id))
  await countPayouts(tx, left, { payouts: -1 }, { actor, now })
  return canceled.length
}
