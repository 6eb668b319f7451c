import { eq } from 'drizzle-orm'
import { type BatchStatus, batches, payouts } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { holdBatches } from './batch-progress.ts'
import { batchNotFound, ownBatch } from './batches.ts'
import { isId } from './ids.ts'
import type { EmployerContext } from './user.ts'

/** A batch leaves these with its first payout that is sent, and never comes back. */
const isUnsent = (status: BatchStatus) => status === 'draft' || status === 'ready'

/**
 * Removes a batch of which nothing was ever sent, with its payouts.
 * @throws Refusal `batch-not-found`; `batch-sent` once a payout of it has been sent
 */
export async function removeBatch({ db, employer, now }: EmployerContext, id: string): Promise<{ id: string }> {
  if (!isId(id)) throw batchNotFound()
  return await transactFor(db, employer.organisation, async (tx) => {
    // Under this lock no payout of the batch is claimed.
    const [held] = await holdBatches(tx, ownBatch(employer, id))
    if (!held) throw batchNotFound()
    if (!isUnsent(held.status)) throw new Refusal('batch-sent', 'a payout of this batch has been sent')
    const gone = await tx.delete(payouts).where(eq(payouts.batch, id)).returning({ id: payouts.id })
    await tx.delete(batches).where(eq(batches.id, id))
    const { organisation, actor } = employer
    const subject = { kind: 'batch' as const, id }
    const detail = { payouts: gone.length }
    await recordAudit(tx, now, { organisation, actor, action: 'batch.removed', subject, detail })
    return { id }
  })
}
