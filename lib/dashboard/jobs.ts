import { and, count, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { union } from 'drizzle-orm/pg-core'
import { batches, contractors, identities, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs, JOB_STATUSES } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo } from '#lib/db/count.ts'
import { byTime } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import { anyOf, BY_TIME, betweenDays, type Filters, having, isErrorText, isOneOf, isRecordId } from './filters.ts'
import {
  byStatus,
  countOf,
  type List,
  type PageRequest,
  type Read,
  readAll,
  readPage,
  type Source,
  totals,
} from './list.ts'
import { envelopeRows } from './transfer-rows.ts'

/** When an item of the job last ended, or else when the job started. An index answers it: a run may have 50,000 items. */
export const JOB_PROGRESSED_AT =
  sql`greatest(${batchJobs.createdAt}, (select max(${batchItems.settledAt}) from ${batchItems} where ${batchItems.job} = ${batchJobs.id}))`.mapWith(
    batchJobs.createdAt,
  )

const JOB_COLUMNS = {
  id: batchJobs.id,
  sequence: batchJobs.sequence,
  userKind: batchJobs.userKind,
  userSub: batchJobs.userSub,
  userEmail: identities.email,
  organisation: organisations.id,
  organisationName: organisations.name,
  status: batchJobs.status,
  batch: batchJobs.batch,
  batchName: batches.name,
  error: batchJobs.error,
  createdAt: batchJobs.createdAt,
  endedAt: batchJobs.endedAt,
  progressedAt: JOB_PROGRESSED_AT,
}

const ITEM_COLUMNS = {
  job: batchItems.job,
  position: batchItems.position,
  payout: batchItems.payout,
  transfer: envelopeRows.transfer,
  status: batchItems.status,
  recipient: batchItems.recipient,
  channel: batchItems.channel,
  attempt: batchItems.attempt,
  hash: batchItems.hash,
  error: batchItems.error,
  queuedAt: batchItems.queuedAt,
  sentAt: batchItems.sentAt,
  settledAt: batchItems.settledAt,
}

/** An item of a job. Its sealed amount is not queried. */
export type ItemLine = Read<typeof batchItems.$inferSelect, typeof ITEM_COLUMNS> & {
  /** the id of its last transfer, if one was recorded */
  transfer: string | null
}

/** A relay job with the numbers of its items. */
export type JobSummary = Read<typeof batchJobs.$inferSelect, typeof JOB_COLUMNS> & {
  userEmail: string | null
  /** of the batch that a run pays; null for a job */
  batchName: string | null
  organisation: string | null
  organisationName: string | null
  items: { all: number; paid: number; failed: number }
  progressedAt: Date
}

export const JOB_FILTERS = {
  status: isOneOf(JOB_STATUSES),
  organisation: isRecordId,
  contractor: isRecordId,
  batch: isRecordId,
  /** the error of an item that failed */
  reason: isErrorText,
  ...BY_TIME,
}

export type JobFilters = Filters<typeof JOB_FILTERS>

/** Lists the jobs of all users. */
export async function listJobs(db: Database, filters: JobFilters, page: PageRequest): Promise<List<JobSummary>> {
  const within = conditionOf(db, filters)
  const tabs = byStatus(JOB_STATUSES, (status) => and(within, eq(batchJobs.status, status)))
  const counts = await countUpTo(db, batchJobs, byTime(batchJobs), tabs)
  const part = await readPage(sourceOf(db, filters), page)
  return { ...part, ...totals(counts, filters.status) }
}

export async function findJob(db: Database, id: string): Promise<JobSummary | undefined> {
  const [line] = await selectJobs(db, eq(batchJobs.id, id))
  if (!line) return undefined
  // Not grouped by job: that would sort a run's 50,000 items. `anyOf` makes PostgreSQL use the index.
  const [counts] = await db
    .select(ITEM_COUNTS)
    .from(batchItems)
    .where(anyOf(batchItems.job, sql`select ${id}::uuid`))
  return summarize(line, counts)
}

/** Reads the jobs that match the filters, newest first, in chunks of at most `size`. */
export const readJobs = (db: Database, filters: JobFilters, size?: number) =>
  readAll(sourceOf(db, { ...filters, sort: '' }), size)

function sourceOf(db: Database, filters: JobFilters): Source<JobSummary> {
  const condition = and(conditionOf(db, filters), having(batchJobs.status, filters.status))
  return {
    order: { ...byTime(batchJobs), ascending: filters.sort === 'oldest' },
    read: async ({ beside, order, limit }) => {
      const jobs = await selectJobs(db, and(condition, beside))
        .orderBy(...order)
        .limit(limit)
      return await countItems(db, jobs)
    },
    placeOf,
  }
}

type JobLine = Awaited<ReturnType<typeof selectJobs>>[number]

function selectJobs(db: Database, condition: SQL | undefined) {
  return db
    .select(JOB_COLUMNS)
    .from(batchJobs)
    .leftJoin(identities, and(eq(identities.kind, batchJobs.userKind), eq(identities.sub, batchJobs.userSub)))
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .leftJoin(batches, eq(batches.id, batchJobs.batch))
    .where(condition)
}

/** The condition of a list without its status. */
function conditionOf(db: Database, filters: JobFilters): SQL | undefined {
  const { organisation, contractor, batch, reason, ...days } = filters
  const { kind, sub } = identities
  const isUser = eq(identities.organisation, organisation)
  const users = db.select({ kind, sub }).from(identities).where(isUser)
  const ofUsers = and(
    anyOf(batchJobs.userSub, db.select({ sub }).from(identities).where(isUser)),
    sql`(${batchJobs.userKind}, ${batchJobs.userSub}) in ${users}`,
  )
  const { job, status, error } = batchItems
  const failedFor = db
    .select({ job })
    .from(batchItems)
    .where(and(eq(status, 'failed'), eq(error, reason)))
  return and(
    organisation === '' ? undefined : ofUsers,
    contractor === '' ? undefined : anyOf(batchJobs.id, paying(db, contractor)),
    having(batchJobs.batch, batch),
    reason === '' ? undefined : anyOf(batchJobs.id, failedFor),
    betweenDays(batchJobs.createdAt, days),
  )
}

/** The jobs of the items that pay a contractor: in a run its payouts, in another job its address. */
function paying(db: Database, contractor: string) {
  const { job, payout, recipient } = batchItems
  const isPayee = and(eq(contractors.id, contractor), isNull(contractors.deletedAt))
  const ofRuns = db
    .select({ job })
    .from(batchItems)
    .innerJoin(payouts, eq(payouts.id, payout))
    .where(eq(payouts.contractor, contractor))
  const address = db.select({ address: contractors.address }).from(contractors).where(isPayee)
  const ofJobs = db
    .select({ job })
    .from(batchItems)
    .where(and(isNull(payout), sql`${recipient} = (${address})`))
  return union(ofRuns, ofJobs)
}

const ITEM_COUNTS = {
  all: count(),
  paid: countOf(eq(batchItems.status, 'paid')),
  failed: countOf(eq(batchItems.status, 'failed')),
}

/** Counts the items of jobs. A run has one item per payout of its batch. */
async function countItems(db: Database, jobs: readonly JobLine[]): Promise<JobSummary[]> {
  const { job } = batchItems
  const rows = await db
    .select({ job, ...ITEM_COUNTS })
    .from(batchItems)
    .where(anyOf(job, sql`select unnest(${`{${jobs.map(({ id }) => id).join(',')}}`}::uuid[])`))
    .groupBy(job)
  const counts = new Map(rows.map((row) => [row.job, row]))
  return jobs.map((line) => summarize(line, counts.get(line.id)))
}

const NO_ITEMS = { all: 0, paid: 0, failed: 0 }

const summarize = (line: JobLine, { all, paid, failed } = NO_ITEMS): JobSummary => ({
  ...line,
  items: { all, paid, failed },
})

/** The items of a job: a page of them in order, the first one after the first failed ones. */
export type ItemPage = Pick<List<ItemLine>, 'previous' | 'next'> & { items: ItemLine[] }

const FAILED_FIRST = 20

export async function listItems(db: Database, job: string, page: PageRequest): Promise<ItemPage> {
  const select = (condition: SQL | undefined) =>
    db
      .select(ITEM_COLUMNS)
      .from(batchItems)
      .leftJoin(envelopeRows, eq(envelopeRows.innerHash, batchItems.innerHash))
      .where(and(eq(batchItems.job, job), condition))
  const inOrder = {
    order: { sequence: batchItems.position, ascending: true },
    read: async ({ beside, order, limit }) =>
      await select(beside)
        .orderBy(...order)
        .limit(limit),
    placeOf: ({ position }) => [0, position],
  } satisfies Source<ItemLine>
  const { rows, previous, next } = await readPage(inOrder, page)
  if (previous !== undefined) return { items: rows, previous, next }
  const failed = await select(inArray(batchItems.status, ['failed', 'unknown']))
    .orderBy(batchItems.position)
    .limit(FAILED_FIRST)
  const listed = new Set(failed.map(({ position }) => position))
  return { items: [...failed, ...rows.filter(({ position }) => !listed.has(position))], previous, next }
}
