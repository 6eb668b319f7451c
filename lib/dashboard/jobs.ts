import { and, count, desc, eq, inArray, or, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs, JOB_STATUSES } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { readInParts } from '#lib/db/paging.ts'
import { contains } from '#lib/db/search.ts'
import {
  afterRow,
  countsOf,
  type Filters,
  type List,
  type ListRequest,
  ofOrganisation,
  PART_SIZE,
  type Read,
  readPage,
} from './list.ts'
import { envelopeRows } from './transfer-rows.ts'

const JOB_COLUMNS = {
  id: batchJobs.id,
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

/** Fewer than other records, since a job shows its items. */
const JOBS_ON_A_PAGE = 20

/** Lists all jobs, newest first. A search matches a job, its user, and its items' payees, channels and hashes. */
export async function listJobs(db: Database, request: ListRequest): Promise<List<JobLine>> {
  const { within, shown, status } = conditionsOf(db, request)
  const counted = await db
    .select({ value: batchJobs.status, count: count() })
    .from(batchJobs)
    .where(within)
    .groupBy(batchJobs.status)
  return await readPage(
    countsOf(counted),
    { ...request, status: status ?? '' },
    async ({ limit, offset }) => await addItems(db, await selectJobs(db, shown).limit(limit).offset(offset)),
    JOBS_ON_A_PAGE,
  )
}

export async function findJobLine(db: Database, id: string): Promise<JobLine | undefined> {
  const [job] = await addItems(db, await selectJobs(db, eq(batchJobs.id, id)))
  return job
}

/** Reads the jobs that match the filters, newest first, in parts of at most `size`. */
export function readJobs(db: Database, filters: Filters<ListRequest>, size = PART_SIZE) {
  const { shown } = conditionsOf(db, filters)
  const read = async (last: JobLine | undefined) =>
    await addItems(db, await selectJobs(db, and(shown, last && afterRow(batchJobs, last))).limit(size))
  return readInParts(read, size)
}

function selectJobs(db: Database, condition: SQL | undefined) {
  return db
    .select(JOB_COLUMNS)
    .from(batchJobs)
    .leftJoin(identities, and(eq(identities.kind, batchJobs.userKind), eq(identities.sub, batchJobs.userSub)))
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .leftJoin(batches, eq(batches.id, batchJobs.batch))
    .where(condition)
    .orderBy(desc(batchJobs.createdAt), desc(batchJobs.id))
}

/** The conditions of a list: with its status (`shown`) and without it (`within`). */
function conditionsOf(db: Database, { q, status: name, organisation }: Filters<ListRequest>) {
  const status = JOB_STATUSES.find((one) => one === name)
  const within = and(ofUsersOf(db, organisation), containingText(db, q))
  return { status, within, shown: and(within, status && eq(batchJobs.status, status)) }
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

function ofUsersOf(db: Database, organisation: string): SQL | undefined {
  if (organisation === '') return undefined
  const users = db
    .select({ kind: identities.kind, sub: identities.sub })
    .from(identities)
    .where(ofOrganisation(identities.organisation, organisation))
  return sql`(${batchJobs.userKind}, ${batchJobs.userSub}) in ${users}`
}

function containingText(db: Database, q: string): SQL | undefined {
  const own = contains(q, batchJobs.id, batchJobs.userSub)
  if (!own) return undefined
  const { job, recipient, channel, innerHash, hash } = batchItems
  const paid = db
    .select({ address: contractors.address })
    .from(contractors)
    .where(contains(q, contractors.name, contractors.email))
  const items = db
    .select({ job })
    .from(batchItems)
    .where(or(contains(q, recipient, channel, innerHash, hash), inArray(recipient, paid)))
  const users = db
    .select({ kind: identities.kind, sub: identities.sub })
    .from(identities)
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .where(contains(q, organisations.name, identities.email))
  return or(own, inArray(batchJobs.id, items), sql`(${batchJobs.userKind}, ${batchJobs.userSub}) in ${users}`)
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
