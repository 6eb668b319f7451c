import { and, eq, sql } from 'drizzle-orm'
import type { z } from 'zod'
import { batches, identities } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Identity } from '#lib/auth/session.ts'
import { builtOnce } from '#lib/db/built-query.ts'
import type { DirectoryContext } from '../context.ts'
import { isId } from '../ids.ts'
import { admitUser, isUpToDate, requireEmployer } from '../users.ts'
import { batchNotFound, batchShape } from './batches.ts'
import { NEWEST_RUN, runShape } from './newest-run.ts'

export const batchProgressShape = batchShape
  .pick({ status: true, settledCount: true, failedCount: true, payoutCount: true })
  .extend({ run: runShape.optional() })
export type BatchProgress = z.output<typeof batchProgressShape>

interface BatchStatusPoll {
  progress: BatchProgress
  organisation: string
  /** whether the organisation has an open transfer */
  hasOpenTransfers: boolean
}

/**
 * Reads the progress of a batch for the user of a session. Clients poll it once a second during a run, so one
 * statement looks up the user, the batch and the open transfers.
 * @throws Refusal `employer-required`, `provider-mismatch`, `batch-not-found`
 */
export async function pollBatchStatus(
  context: DirectoryContext,
  { identity, id }: { identity: Identity; id: string },
): Promise<BatchStatusPoll> {
  const { kind, sub } = identity
  const read = () => statusQuery(context.db).execute({ kind, sub, id: isId(id) ? id : null })
  let rows = await read()
  if (!rows[0] || !isUpToDate(rows[0], identity)) {
    await admitUser(context, identity)
    rows = await read()
  }
  const [row] = rows
  // A batch is its employer's: only without one its role may be missing.
  if (!row?.progress) {
    requireEmployer(await admitUser(context, identity))
    throw batchNotFound()
  }
  const { organisation, progress, run, hasOpenTransfers } = row
  return { progress: { ...progress, ...(run && { run }) }, organisation, hasOpenTransfers }
}

const statusQuery = builtOnce((db) => {
  const { status, settledCount, failedCount, payoutCount } = batches
  const open = db
    .select({ one: sql`1` })
    .from(transfers)
    .where(and(eq(transfers.organisation, identities.organisation), eq(transfers.status, 'open')))
  return db
    .select({
      issuer: identities.issuer,
      email: identities.email,
      organisation: identities.organisation,
      progress: { status, settledCount, failedCount, payoutCount },
      run: NEWEST_RUN,
      hasOpenTransfers: sql<boolean>`exists (${open})`,
    })
    .from(identities)
    .leftJoin(batches, and(eq(batches.id, sql.placeholder('id')), eq(batches.organisation, identities.organisation)))
    .where(and(eq(identities.kind, sql.placeholder('kind')), eq(identities.sub, sql.placeholder('sub'))))
    .prepare('')
})
