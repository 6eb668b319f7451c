import { and, count, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { batches, identities, organisations } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs, JOB_STATUSES } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { byTime } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import { anyOf, BY_TIME, betweenDays, type Filters, having, isOneOf, isRecordId } from './filters.ts'
import {
  byStatus,
  countUpTo,
  type List,
  type PageRequest,
  type Read,
  readAll,
  readPage,
  type Source,
  totals,
} from './list.ts'
import { envelopeRows } from './transfer-rows.ts'

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

/** A relay job with its items in order. */
export type JobLine = Read<typeof batchJobs.$inferSelect, typeof JOB_COLUMNS> & {
  userEmail: string | null
  /** of the batch that a run pays; null for a job */
  batchName: string | null
  organisation: string | null
  organisationName: string | null
  items: ItemLine[]
  /** when one of its items last moved */
  progressedAt: Date
}

/** A job with the numbers of its items. */
export type JobSummary = Omit<JobLine, 'items'> & { items: { all: number; paid: number; failed: number } }

export const JOB_FILTERS = {
  status: isOneOf(JOB_STATUSES),
  organisation: isRecordId,
  batch: isRecordId,
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

export async function findJobLine(db: Database, id: string): Promise<JobLine | undefined> {
  const [job] = await addItems(db, await selectJobs(db, eq(batchJobs.id, id)))
  return job
}

/** Reads the jobs that match the filters, newest first, in parts of at most `size`. */
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
function conditionOf(db: Database, { organisation, batch, ...days }: JobFilters): SQL | undefined {
  const { kind, sub } = identities
  const isUser = eq(identities.organisation, organisation)
  const users = db.select({ kind, sub }).from(identities).where(isUser)
  const ofUsers = and(
    anyOf(batchJobs.userSub, db.select({ sub }).from(identities).where(isUser)),
    sql`(${batchJobs.userKind}, ${batchJobs.userSub}) in ${users}`,
  )
  return and(
    organisation === '' ? undefined : ofUsers,
    having(batchJobs.batch, batch),
    betweenDays(batchJobs.createdAt, days),
  )
}

/** Counts the items of jobs. A run has as many as its batch. */
async function countItems(db: Database, jobs: Awaited<ReturnType<typeof selectJobs>>): Promise<JobSummary[]> {
  const { job, status, queuedAt, sentAt, settledAt } = batchItems
  const rows = await db
    .select({
      job,
      all: count(),
      paid: sql`count(*) filter (where ${status} = 'paid')`.mapWith(Number),
      failed: sql`count(*) filter (where ${status} = 'failed')`.mapWith(Number),
      movedAt: sql`max(greatest(${queuedAt}, ${sentAt}, ${settledAt}))`.mapWith(queuedAt),
    })
    .from(batchItems)
    .where(anyOf(job, sql`select unnest(${`{${jobs.map(({ id }) => id).join(',')}}`}::uuid[])`))
    .groupBy(job)
  const counts = new Map(rows.map((row) => [row.job, row]))
  return jobs.map((line) => {
    const { all = 0, paid = 0, failed = 0, movedAt } = counts.get(line.id) ?? {}
    const progressedAt = movedAt && movedAt > line.createdAt ? movedAt : line.createdAt
    return { ...line, items: { all, paid, failed }, progressedAt }
  })
}

async function addItems(db: Database, jobs: Awaited<ReturnType<typeof selectJobs>>): Promise<JobLine[]> {
  const items = await itemsOf(
    db,
    jobs.map(({ id }) => id),
  )
  return jobs.map((job) => withItems(job, items.get(job.id) ?? []))
}

function withItems(job: Omit<JobLine, 'items' | 'progressedAt'>, items: ItemLine[]): JobLine {
  const times = items.flatMap(({ queuedAt, sentAt, settledAt }) =>
    [queuedAt, sentAt, settledAt].filter((at) => at !== null),
  )
  const progressedAt = times.reduce((last, at) => (at > last ? at : last), job.createdAt)
  return { ...job, items, progressedAt }
}

async function itemsOf(db: Database, jobs: readonly string[]): Promise<Map<string, ItemLine[]>> {
  if (jobs.length === 0) return new Map()
  const rows = await db
    .select(ITEM_COLUMNS)
    .from(batchItems)
    .leftJoin(envelopeRows, eq(envelopeRows.innerHash, batchItems.innerHash))
    .where(inArray(batchItems.job, jobs))
    .orderBy(batchItems.job, batchItems.position)
  return Map.groupBy(rows, ({ job }) => job)
}
