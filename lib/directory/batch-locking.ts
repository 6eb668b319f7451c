import { and, eq, inArray } from 'drizzle-orm'
import { batches, payouts } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { BATCH_COLUMNS, type Batch, batchNotFound, ownBatch, presentBatch } from './batches.ts'
import { isId } from './ids.ts'
import { BATCH_MOVES, PAYOUT_MOVES } from './moves.ts'
import type { Employer, EmployerContext } from './user.ts'

/**
 * Closes a batch to instructions: it and its payouts are `ready` to be sent. A batch that is ready is answered as it
 * is, so that the call may be repeated.
 * @throws Refusal `batch-not-found`; `batch-locked` once it has started
 */
export async function lockBatch({ db, employer, now }: EmployerContext, id: string): Promise<Batch> {
  if (!isId(id)) throw batchNotFound()
  return await transactFor(db, employer.organisation, async (tx) => {
    const [locked] = await tx
      .update(batches)
      .set({ status: 'ready' })
      .where(and(ownBatch(employer, id), inArray(batches.status, statusesBefore(BATCH_MOVES, 'ready'))))
      .returning(BATCH_COLUMNS)
    if (!locked) return await findReady(tx, employer, id)
    await tx
      .update(payouts)
      .set({ status: 'ready' })
      .where(and(eq(payouts.batch, id), inArray(payouts.status, statusesBefore(PAYOUT_MOVES, 'ready'))))
    const { organisation, actor } = employer
    const subject = { kind: 'batch' as const, id }
    await recordAudit(tx, now, { organisation, actor, action: 'batch.locked', subject })
    return presentBatch(locked)
  })
}

async function findReady(tx: Database, employer: Employer, id: string): Promise<Batch> {
  const [batch] = await tx.select(BATCH_COLUMNS).from(batches).where(ownBatch(employer, id))
  if (!batch) throw batchNotFound()
  if (batch.status !== 'ready') throw new Refusal('batch-locked', `batch is ${batch.status}`)
  return presentBatch(batch)
}
