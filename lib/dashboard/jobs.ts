import { and, count, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { union } from 'drizzle-orm/pg-core'
import { batches, contractors, identities, organisations, payouts } from '#drizzle/schema/directory.ts'
import { JOB_STATUSES, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { byTime } from '#lib/db/keyset.ts'
import { anyOf, BY_TIME, betweenDays, having, isErrorText, isOneOf, isRecordId } from './filters.ts'
import { LAST_TRANSFER, LINE_STATE } from './line-state.ts'
import { countOf, listTable, type PageRequest, type RowOf, readPage, readPart, type Source } from './list.ts'

/** When an item of the job last ended, or else when the job started. An index answers it: a run may have 50,000 items. */
export const JOB_PROGRESSED_AT =
  sql`greatest(${relayJobs.createdAt}, (select max(${relayLines.settledAt}) from ${relayLines} where ${relayLines.job} = ${relayJobs.id}))`.mapWith(
    relayJobs.createdAt,
  )

/** The jobs of all users. */
export const JOBS = listTable({
  filters: {
    status: isOneOf(JOB_STATUSES),
    organisation: isRecordId,
    contractor: isRecordId,
    batch: isRecordId,
    /** the error of an item that failed */
    reason: isErrorText,
    ...BY_TIME,
  },
  table: relayJobs,
  newest: byTime(relayJobs),
  status: relayJobs.status,
  conditionOf: (db, { organisation, contractor, batch, reason, ...days }) =>
    and(
      organisation === '' ? undefined : ofUsers(db, organisation),
      contractor === '' ? undefined : anyOf(relayJobs.id, paying(db, contractor)),
      having(relayJobs.batch, batch),
      reason === '' ? undefined : anyOf(relayJobs.id, failedFor(db, reason)),
      betweenDays(relayJobs.createdAt, days),
    ),
  select: selectJobs,
  present: countItems,
})

export async function findJob(db: Database, id: string): Promise<JobSummary | undefined> {
  const [line] = await selectJobs(db, eq(relayJobs.id, id))
  if (!line) return undefined
  // Not grouped by job: that would sort a run's 50,000 items. `anyOf` makes PostgreSQL use the index.
  const [counts] = await db
    .select(ITEM_COUNTS)
    .from(relayLines)
    .where(anyOf(relayLines.job, sql`select ${id}::uuid`))
  return summarize(line, counts)
}

type JobLine = RowOf<typeof selectJobs>

function selectJobs(db: Database, condition: SQL | undefined) {
  return db
    .select({
      id: relayJobs.id,
      sequence: relayJobs.sequence,
      userKind: relayJobs.userKind,
      userSub: relayJobs.userSub,
      userEmail: identities.email,
      organisation: organisations.id,
      organisationName: organisations.name,
      status: relayJobs.status,
      batch: relayJobs.batch,
      /** of the batch that a run pays; null for a job */
      batchName: batches.name,
      error: relayJobs.error,
      createdAt: relayJobs.createdAt,
      endedAt: relayJobs.endedAt,
      progressedAt: JOB_PROGRESSED_AT,
    })
    .from(relayJobs)
    .leftJoin(identities, and(eq(identities.kind, relayJobs.userKind), eq(identities.sub, relayJobs.userSub)))
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .leftJoin(batches, eq(batches.id, relayJobs.batch))
    .where(condition)
}

/** The condition for the jobs of an organisation's users. */
function ofUsers(db: Database, organisation: string): SQL | undefined {
  const { kind, sub } = identities
  const isUser = eq(identities.organisation, organisation)
  const users = db.select({ kind, sub }).from(identities).where(isUser)
  return and(
    anyOf(relayJobs.userSub, db.select({ sub }).from(identities).where(isUser)),
    sql`(${relayJobs.userKind}, ${relayJobs.userSub}) in ${users}`,
  )
}

function failedFor(db: Database, reason: string) {
  const { job, outcome, error } = relayLines
  return db
    .select({ job })
    .from(relayLines)
    .where(and(eq(outcome, 'failed'), eq(error, reason)))
}

/** The jobs of the items that pay a contractor: in a run its payouts, in another job its address. */
function paying(db: Database, contractor: string) {
  const { job, payout, recipient } = relayLines
  const isPayee = and(eq(contractors.id, contractor), isNull(contractors.deletedAt))
  const ofRuns = db
    .select({ job })
    .from(relayLines)
    .innerJoin(payouts, eq(payouts.id, payout))
    .where(eq(payouts.contractor, contractor))
  const address = db.select({ address: contractors.address }).from(contractors).where(isPayee)
  const ofJobs = db
    .select({ job })
    .from(relayLines)
    .where(and(isNull(payout), sql`${recipient} = (${address})`))
  return union(ofRuns, ofJobs)
}

const ITEM_COUNTS = {
  all: count(),
  paid: countOf(eq(relayLines.outcome, 'paid')),
  failed: countOf(eq(relayLines.outcome, 'failed')),
}

/** Counts the items of jobs. A run has one item per payout of its batch. */
async function countItems(db: Database, jobs: readonly JobLine[]): Promise<JobSummary[]> {
  const { job } = relayLines
  const rows = await db
    .select({ job, ...ITEM_COUNTS })
    .from(relayLines)
    .where(anyOf(job, sql`select unnest(${`{${jobs.map(({ id }) => id).join(',')}}`}::uuid[])`))
    .groupBy(job)
  const counts = new Map(rows.map((row) => [row.job, row]))
  return jobs.map((line) => summarize(line, counts.get(line.id)))
}

/** A relay job with the numbers of its items. */
export type JobSummary = ReturnType<typeof summarize>

const NO_ITEMS = { all: 0, paid: 0, failed: 0 }

const summarize = (line: JobLine, { all, paid, failed } = NO_ITEMS) => ({ ...line, items: { all, paid, failed } })

/** An item of a job. Its sealed amount is not queried. */
export type ItemLine = RowOf<typeof selectItems>

function selectItems(db: Database, job: string, condition: SQL | undefined) {
  return db
    .select({
      job: relayLines.job,
      position: relayLines.position,
      payout: relayLines.payout,
      /** the id of its last transfer, if one was recorded */
      transfer: LAST_TRANSFER,
      state: LINE_STATE,
      recipient: relayLines.recipient,
      channel: relayLines.channel,
      hash: relayLines.hash,
      error: relayLines.error,
      queuedAt: relayLines.queuedAt,
      sentAt: relayLines.sentAt,
      settledAt: relayLines.settledAt,
    })
    .from(relayLines)
    .where(and(eq(relayLines.job, job), condition))
}

const FAILED_FIRST = 20

/** The items of a job: a page of them in order, the first one after the first failed ones. */
export async function listItems(db: Database, job: string, page: PageRequest) {
  const inOrder: Source<ItemLine> = {
    order: { sequence: relayLines.position, ascending: true },
    read: ({ beside, ...part }) => readPart(selectItems(db, job, beside), part),
    placeOf: ({ position }) => [0, position],
  }
  const { rows, previous, next } = await readPage(inOrder, page)
  if (previous !== undefined) return { items: rows, previous, next }
  const isFailed = inArray(relayLines.outcome, ['failed', 'unknown'])
  const failed = await selectItems(db, job, isFailed).orderBy(relayLines.position).limit(FAILED_FIRST)
  const listed = new Set(failed.map(({ position }) => position))
  return { items: [...failed, ...rows.filter(({ position }) => !listed.has(position))], previous, next }
}
