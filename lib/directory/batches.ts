import { and, asc, count, eq, type Placeholder, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import { BATCH_STATUSES, batches, organisations, payouts } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { preparedOnce } from '#lib/db/prepared.ts'
import { rowsOf } from '#lib/db/rows.ts'
import { afterPosition, cutPage, newestFirst, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { plainText } from '#lib/text/plain-text.ts'
import { isId } from './ids.ts'
import { contains, listQuery } from './list-filters.ts'
import { asDissolved, requireMember } from './organisations.ts'
import { PAYOUT_COLUMNS, payoutShape, presentPayout } from './payouts/payouts.ts'
import type { Employer, EmployerContext } from './user.ts'

export const newBatch = z.object({ name: plainText('name', 200) })

export const batchShape = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(BATCH_STATUSES),
  payoutCount: z.int().meta({ description: 'payouts that are not canceled' }),
  settledCount: z.int().meta({ description: 'those of them that are paid' }),
  failedCount: z.int().meta({ description: 'those of them that failed; they can be sent again' }),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional(),
  completedAt: z.iso.datetime().optional(),
})
export type Batch = z.output<typeof batchShape>

export const batchesShape = z.object({ batches: z.array(batchShape) })

export const batchWithPayoutsShape = batchShape.extend({ payouts: z.array(payoutShape) })
export type BatchWithPayouts = z.output<typeof batchWithPayoutsShape>

export const batchProgressShape = batchShape.pick({
  status: true,
  settledCount: true,
  failedCount: true,
  payoutCount: true,
})
export type BatchProgress = z.output<typeof batchProgressShape>

export const BATCH_COLUMNS = {
  id: batches.id,
  name: batches.name,
  status: batches.status,
  payoutCount: batches.payoutCount,
  settledCount: batches.settledCount,
  failedCount: batches.failedCount,
  createdAt: batches.createdAt,
  startedAt: batches.startedAt,
  completedAt: batches.completedAt,
}

/**
 * Makes a batch, still empty and open for instructions.
 * @throws Refusal `organisation-dissolved` when the organisation has just been dissolved
 */
export async function createBatch(
  { db, employer, now }: EmployerContext,
  { name }: z.output<typeof newBatch>,
): Promise<Batch> {
  const creating = transactFor(db, employer.organisation, async (tx) => {
    const { organisation, actor } = employer
    const [batch] = await tx.insert(batches).values({ organisation, name, createdAt: now }).returning(BATCH_COLUMNS)
    if (!batch) throw new Error('an insert without a row')
    await requireMember(tx, organisation, actor)
    const subject = { kind: 'batch' as const, id: batch.id }
    await recordAudit(tx, now, { organisation, actor, action: 'batch.created', subject })
    return presentBatch(batch)
  })
  return await creating.catch((error: unknown) => {
    throw asDissolved(error)
  })
}

/** The query of GET /batches. */
export const batchesQuery = listQuery(BATCH_STATUSES, 'name')
type BatchFilters = Pick<z.output<typeof batchesQuery>, 'status' | 'q'>

/** The batches of an organisation, newest first. */
export async function listBatches(
  db: Database,
  { organisation }: Pick<Employer, 'organisation'>,
  { status, q }: BatchFilters,
  page: PageRequest,
): Promise<Page<Batch>> {
  const isFiltered = status !== undefined || q !== undefined
  const isListed = and(
    eq(batches.organisation, organisation),
    status && eq(batches.status, status),
    contains(q, [batches.name]),
  )
  const [rows, counted] = await Promise.all([
    isFiltered || page.after
      ? rowsOf(db, LISTED, selectListed(db, and(isListed, afterPosition(batches, page)), rowsToRead(page))).execute(
          organisation,
        )
      : newestOf(db).execute(organisation, { organisation, rows: rowsToRead(page) }),
    page.counts && !isFiltered ? countOf(db).execute({ organisation }) : [],
  ])
  const { items, next } = cutPage(rows, page)
  const list = { items: items.map(presentBatch), next }
  if (!page.counts || !isFiltered) return { ...list, ...counted[0] }
  if (!page.after && !next) return { ...list, total: items.length }
  const [found] = await db.select({ total: count() }).from(batches).where(isListed)
  return { ...list, ...found }
}

const LISTED = { ...BATCH_COLUMNS, sequence: batches.sequence }

function selectListed(db: Database, isListed: SQL | undefined, rows: number | Placeholder) {
  return db
    .select(LISTED)
    .from(batches)
    .where(isListed)
    .orderBy(...newestFirst(batches))
    .limit(rows)
}

/** What frontends ask for most: the first page, without a filter. */
const newestOf = preparedOnce((db) => {
  const isOwn = eq(batches.organisation, sql.placeholder('organisation'))
  return rowsOf(db, LISTED, selectListed(db, isOwn, sql.placeholder('rows')), 'newest_batches')
})

const countOf = preparedOnce((db) =>
  db
    .select({ total: organisations.batchCount })
    .from(organisations)
    .where(eq(organisations.id, sql.placeholder('organisation')))
    .prepare('count_batches'),
)

/**
 * A batch and its payouts, in the order of their instructions.
 * @throws Refusal `batch-not-found`
 */
export async function findBatch(
  db: Database,
  employer: Pick<Employer, 'organisation'>,
  id: string,
): Promise<BatchWithPayouts> {
  const [batch] = isId(id) ? await db.select(BATCH_COLUMNS).from(batches).where(ownBatch(employer, id)) : []
  if (!batch) throw batchNotFound()
  const inOrder = db.select(PAYOUT_COLUMNS).from(payouts).where(eq(payouts.batch, id)).orderBy(asc(payouts.sequence))
  const rows = await rowsOf(db, PAYOUT_COLUMNS, inOrder).execute(employer.organisation)
  return { ...presentBatch(batch), payouts: rows.map(presentPayout) }
}

/**
 * How far a batch has come. It is one row, however many payouts there are: the counters move with them.
 * @throws Refusal `batch-not-found`
 */
export async function readBatchProgress(
  db: Database,
  employer: Pick<Employer, 'organisation'>,
  id: string,
): Promise<BatchProgress> {
  const [progress] = isId(id) ? await progressOf(db).execute({ id, organisation: employer.organisation }) : []
  if (!progress) throw batchNotFound()
  return progress
}

const progressOf = preparedOnce((db) => {
  const { status, settledCount, failedCount, payoutCount } = BATCH_COLUMNS
  return db
    .select({ status, settledCount, failedCount, payoutCount })
    .from(batches)
    .where(and(eq(batches.id, sql.placeholder('id')), eq(batches.organisation, sql.placeholder('organisation'))))
    .prepare('batch_progress')
})

/** The condition for the batch `id`, if it is the employer's own. */
export const ownBatch = ({ organisation }: Pick<Employer, 'organisation'>, id: string) =>
  and(eq(batches.id, id), eq(batches.organisation, organisation))

export const batchNotFound = () => new Refusal('batch-not-found', 'batch not found')

export function presentBatch(row: Omit<typeof batches.$inferSelect, 'organisation' | 'sequence'>): Batch {
  const { createdAt, startedAt, completedAt, id, name, status, payoutCount, settledCount, failedCount } = row
  return {
    id,
    name,
    status,
    payoutCount,
    settledCount,
    failedCount,
    createdAt: createdAt.toISOString(),
    ...(startedAt && { startedAt: startedAt.toISOString() }),
    ...(completedAt && { completedAt: completedAt.toISOString() }),
  }
}
