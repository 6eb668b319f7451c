import { and, asc, count, eq, inArray, or, type SQL, sql } from 'drizzle-orm'
import { BATCH_STATUSES, batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { afterPosition, newestFirst, readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import { BATCH_COLUMNS } from '#lib/directory/batches/batches.ts'
import { isId } from '#lib/directory/ids.ts'
import {
  countsOf,
  type Filters,
  type List,
  type ListRequest,
  ofOrganisation,
  PART_SIZE,
  type Read,
  readPage,
} from './list.ts'

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

/** Lists the batches of all organisations, newest first. */
export async function listBatches(db: Database, request: ListRequest): Promise<List<BatchLine>> {
  const { within, shown, status } = conditionsOf(db, request)
  const counted = await db
    .select({ value: batches.status, count: count() })
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(within)
    .groupBy(batches.status)
  return await readPage(countsOf(counted), { ...request, status: status ?? '' }, ({ limit, offset }) =>
    selectBatches(db, shown)
      .orderBy(...newestFirst(batches))
      .limit(limit)
      .offset(offset),
  )
}

/** Reads the batches that match the filters, newest first, in parts of at most `size`. */
export function readBatches(db: Database, filters: Filters<ListRequest>, size = PART_SIZE) {
  const { shown } = conditionsOf(db, filters)
  const read = async (after: BatchLine | undefined) =>
    await selectBatches(db, and(shown, afterPosition(batches, { after })))
      .orderBy(...newestFirst(batches))
      .limit(size)
  return readInParts(read, size)
}

/** The conditions of a list: with its status (`shown`) and without it (`within`). */
function conditionsOf(db: Database, filters: Filters<ListRequest>) {
  const status = BATCH_STATUSES.find((name) => name === filters.status)
  const within = and(ofOrganisation(batches.organisation, filters.organisation), containingText(db, filters.q))
  return { status, within, shown: and(within, status && eq(batches.status, status)) }
}

/** Matches a part of the batch's or organisation's name, or of the payee, address or hash of one of its payouts. */
function containingText(db: Database, q: string): SQL | undefined {
  const own = contains(q, batches.name, organisations.name, batches.id)
  const { name, email } = contractors
  const paying = db
    .select({ batch: payouts.batch })
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .where(contains(q, name, email, payouts.address, payouts.txHash))
  return own && or(own, inArray(batches.id, paying))
}

function selectBatches(db: Database, condition: SQL | undefined) {
  return db
    .select(COLUMNS)
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(condition)
}

/** Lists the batches in progress, longest without progress first, with their total number. */
export async function listMovingBatches(db: Database, limit: number): Promise<{ batches: BatchLine[]; total: number }> {
  const started = eq(batches.status, 'started')
  const [rows, [all]] = await Promise.all([
    selectBatches(db, started).orderBy(asc(batches.progressedAt), asc(batches.sequence)).limit(limit),
    db.select({ count: count() }).from(batches).where(started),
  ])
  return { batches: rows, total: all?.count ?? 0 }
}

export async function findBatchLine(db: Database, id: string): Promise<BatchLine | undefined> {
  if (!isId(id)) return undefined
  const [batch] = await selectBatches(db, eq(batches.id, id))
  return batch
}
