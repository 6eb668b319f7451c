import { and, asc, eq, type SQL, sql } from 'drizzle-orm'
import { BATCH_STATUSES, batches, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo } from '#lib/db/count.ts'
import { byTime } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import { BATCH_COLUMNS } from '#lib/directory/batches/batches.ts'
import { isId } from '#lib/directory/ids.ts'
import { anyOf, BY_TIME, betweenDays, type Filters, having, isOneOf, isRecordId } from './filters.ts'
import { byStatus, type List, type PageRequest, type Read, readAll, readPage, type Source, totals } from './list.ts'

/** When the batch started, or a payout of it was last sent or settled; null for a completed batch. */
export const lastProgress =
  sql<Date | null>`case when ${batches.status} <> 'completed' then coalesce(${batches.progressedAt}, ${batches.startedAt}) end`.mapWith(
    batches.createdAt,
  )

const COLUMNS = {
  ...BATCH_COLUMNS,
  organisation: batches.organisation,
  organisationName: organisations.name,
  sequence: batches.sequence,
  progressedAt: lastProgress,
}

export type BatchLine = Read<typeof batches.$inferSelect, typeof COLUMNS> & {
  organisationName: string
  /** when it started or a payout last moved; null before that and once it is completed */
  progressedAt: Date | null
}

export const BATCH_FILTERS = {
  status: isOneOf(BATCH_STATUSES),
  organisation: isRecordId,
  contractor: isRecordId,
  ...BY_TIME,
}

export type BatchFilters = Filters<typeof BATCH_FILTERS>

/** Lists the batches of all organisations. */
export async function listBatches(db: Database, filters: BatchFilters, page: PageRequest): Promise<List<BatchLine>> {
  const within = conditionOf(db, filters)
  const tabs = byStatus(BATCH_STATUSES, (status) => and(within, eq(batches.status, status)))
  const counts = await countUpTo(db, batches, byTime(batches), tabs)
  const part = await readPage(sourceOf(db, filters), page)
  return { ...part, ...totals(counts, filters.status) }
}

/** Reads the batches that match the filters, newest first, in chunks of at most `size`. */
export const readBatches = (db: Database, filters: BatchFilters, size?: number) =>
  readAll(sourceOf(db, { ...filters, sort: '' }), size)

function sourceOf(db: Database, filters: BatchFilters): Source<BatchLine> {
  const condition = and(conditionOf(db, filters), having(batches.status, filters.status))
  return {
    order: { ...byTime(batches), ascending: filters.sort === 'oldest' },
    read: async ({ beside, order, limit }) =>
      await selectBatches(db, and(condition, beside))
        .orderBy(...order)
        .limit(limit),
    placeOf,
  }
}

/** The condition of a list without its status. */
function conditionOf(db: Database, { organisation, contractor, ...days }: BatchFilters): SQL | undefined {
  const paying = db.select({ batch: payouts.batch }).from(payouts).where(eq(payouts.contractor, contractor))
  return and(
    having(batches.organisation, organisation),
    contractor === '' ? undefined : anyOf(batches.id, paying),
    betweenDays(batches.createdAt, days),
  )
}

function selectBatches(db: Database, condition: SQL | undefined) {
  return db
    .select(COLUMNS)
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(condition)
}

/** Lists the batches in progress, longest without progress first, and counts them up to one more than MAX_COUNTED. */
export async function listMovingBatches(db: Database, limit: number): Promise<{ batches: BatchLine[]; total: number }> {
  const started = eq(batches.status, 'started')
  const [rows, counts] = await Promise.all([
    selectBatches(db, started).orderBy(asc(batches.progressedAt), asc(batches.sequence)).limit(limit),
    countUpTo(db, batches, byTime(batches), { started }),
  ])
  return { batches: rows, total: counts.get('started') ?? 0 }
}

export async function findBatchLine(db: Database, id: string): Promise<BatchLine | undefined> {
  if (!isId(id)) return undefined
  const [batch] = await selectBatches(db, eq(batches.id, id))
  return batch
}
