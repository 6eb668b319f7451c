import { eq } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import type { Decision } from './decision.ts'
import { type Envelope, findEnvelopes } from './transfers.ts'

/**
 * What else moves when a transfer is settled: quota, float, payout, grant. It runs in the SQL transaction that settles the
 * transfer, under the lock of its row. `lib/server` hands it in, since those belong to domains above this one.
 */
export type Books = (tx: Database, settled: Transfer, now: Date) => Promise<void>

/** Names the set of envelopes that a decision rests on. */
export const setOf = (envelopes: readonly Pick<Envelope, 'innerHash' | 'outerHash'>[]): string =>
  envelopes
    .map(({ innerHash, outerHash }) => `${innerHash} ${outerHash ?? ''}`)
    .sort()
    .join(', ')

/**
 * Gives a transfer its final status, and the books their move, in one SQL transaction. Of several callers one moves it; all
 * get the same row. Undefined, and nothing changes, unless `lookedUp` names the transfer's envelopes as they are now: one
 * that was recorded since the look-up may be the one that stands on the ledger.
 */
export function settleTransfer(
  db: Database,
  id: string,
  { decision, lookedUp, now, books }: { decision: Decision; lookedUp: string; now: Date; books: Books },
): Promise<Transfer | undefined> {
  return transact(db, async (tx) => {
    const [transfer] = await tx.select().from(transfers).where(eq(transfers.id, id)).for('no key update')
    if (!transfer) throw new Error('a transfer that was never recorded cannot be settled')
    if (transfer.status !== 'open') return transfer
    if (setOf(await findEnvelopes(tx, id)) !== lookedUp) return undefined
    const [settled] = await tx
      .update(transfers)
      .set({ status: decision.status, settledAt: now, ...('record' in decision ? fieldsOf(decision) : {}) })
      .where(eq(transfers.id, id))
      .returning()
    if (!settled) throw new Error('a transfer that was never recorded cannot be settled')
    await books(tx, settled, now)
    return settled
  })
}

/** What a row says of the record that decided it. */
export function fieldsOf({
  record,
  feeCharged,
}: Pick<Extract<Decision, { record: unknown }>, 'record' | 'feeCharged'>) {
  const { hash, applied, ledger, resultCode, contractError } = record
  return { hash, applied, ledger, resultCode, contractError, feeCharged }
}
