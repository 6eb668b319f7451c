import { and, count, desc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, NAMES_SHOWN, type NamedRecord } from './attention.ts'
import { CONDITIONS } from './conditions.ts'
import { jobLimit } from './lateness.ts'
import { findUsersOf } from './users.ts'

const LIMIT = 20

const NEW_JOB = 'Please open your payroll application and start a new job for only the transfers that failed.'

const FAILED = {
  actor: 'employer',
  remedy: 'Ask the employer to start a new job for only the transfers that failed.',
  request: NEW_JOB,
} as const

const UNKNOWN = {
  actor: 'operator',
  remedy: 'Ask the employer to check with the contractors which payments arrived, and to pay only the others.',
  request: 'Please check with the contractors which of these payments arrived, and pay only the others again.',
} as const

const SHORT = {
  actor: 'operator',
  why: 'no relay channel had enough USDC',
  remedy:
    'Send USDC to the address of a relay channel by confidential transfer (Jobs lists them). Then ask the employer to start a new job for only the transfers that failed.',
  request: NEW_JOB,
} as const

const TAMPERED = {
  actor: 'operator',
  why: 'manifest-invalid: the database differs from what the employer has signed, or the delegation was replaced',
  remedy:
    'Ask the employer whether it has replaced the delegation of this run. Until it says so, assume that the database was tampered with, and pay nothing of this batch.',
  request: 'Please tell us whether you replaced the delegation of this run after you signed it.',
} as const

/**
 * Whether an item still needs attention. An item of a job does, because nothing says whether the employer has paid it
 * in another way. An item of a run does while its payout is `ready` and no later run has it: a failed payout, or one
 * whose outcome is unknown, is listed with its batch or transfer.
 */
export const isUnresolved: SQL = sql`(${batchItems.status} in ('failed', 'unknown') and (${batchItems.payout} is null or (
  exists (select from ${payouts} where ${payouts.id} = ${batchItems.payout} and ${payouts.status} = 'ready')
  and not exists (select from ${batchItems} as later join ${batchJobs} as later_job on later_job.id = later.job
    where later.payout = ${batchItems.payout} and later_job.created_at > ${batchJobs.createdAt}))))`

/**
 * Lists at most 20 relay jobs with unresolved items that no operator has acknowledged.
 * @param only the job, or the batch of a run, to report on alone, acknowledged or not
 */
export async function listFailedJobs(db: Database, only?: { job: string } | { batch: string }): Promise<Attention[]> {
  const isListed = only ? isOf(only) : inArray(batchJobs.id, await findFailedJobs(db))
  const jobs = await db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
      batch: { id: batches.id, name: batches.name },
      employer: { id: organisations.id, name: organisations.name },
      // A job's own error counts items from 0, and the pages count from 1.
      error: sql<string | null>`coalesce(min(${batchItems.error}), ${batchJobs.error})`,
      endedAt: batchJobs.endedAt,
      failed: sql`count(*) filter (where ${isUnresolved})`.mapWith(Number),
      isShort: sql<boolean>`bool_or(${isUnresolved} and cardinality(${batchItems.unable}) > 0)`,
      isUnknown: sql<boolean>`bool_or(${batchItems.status} = 'unknown')`,
      isTampered: sql<boolean>`bool_or(${isUnresolved} and ${batchItems.error} = 'manifest-invalid')`,
      all: count(),
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(batchJobs)
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .leftJoin(batches, eq(batches.id, batchJobs.batch))
    .leftJoin(organisations, eq(organisations.id, batches.organisation))
    .leftJoin(acknowledgementRows, isJobAcknowledged)
    .where(and(eq(batchJobs.status, 'failed'), isListed))
    .groupBy(batchJobs.id, batches.id, organisations.id, acknowledgementRows.condition, acknowledgementRows.subject)
    .having(sql`bool_or(${isUnresolved})`)
    .orderBy(...LATEST_ENDED)
  const users = await findUsersOf(db, jobs)
  const payees = await findPayees(
    db,
    jobs.map(({ id }) => id),
  )
  return jobs.map((job) => {
    const { id, error, endedAt, failed, isShort, isUnknown, isTampered, all, acknowledgement } = job
    const user = job.employer ? { organisation: job.employer } : users(job)
    const contractors = (payees.get(id) ?? []).filter((one) => one.organisation === user.organisation?.id)
    return {
      ...CONDITIONS.jobFailed.notice,
      key: `job ${id}`,
      since: endedAt ?? undefined,
      ...subjectOf(job),
      what: `${failed} of ${all} ${all === 1 ? 'transfer' : 'transfers'}${job.batch ? ' of its run' : ''} failed${isUnknown ? ', or have an unknown outcome' : ''}`,
      why: error ?? '',
      ...(isTampered ? TAMPERED : isUnknown ? UNKNOWN : isShort ? SHORT : FAILED),
      ...user,
      contractors: contractors.slice(0, NAMES_SHOWN),
      moreContractors: Math.max(0, contractors.length - NAMES_SHOWN),
      ...(endedAt && { acknowledgeable: { condition: 'jobFailed', subject: id, lastEvent: endedAt } }),
      acknowledgement,
      page: `/jobs/${id}`,
    }
  })
}

const isJobAcknowledged = acknowledges('jobFailed', batchJobs.id, batchJobs.endedAt)
const LATEST_ENDED = [desc(batchJobs.endedAt), batchJobs.id]

/** Finds at most 20 unacknowledged jobs, starting from the few unresolved items: a job may have thousands of others. */
async function findFailedJobs(db: Database): Promise<string[]> {
  const jobs = await db
    .select({ id: batchJobs.id })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .leftJoin(acknowledgementRows, isJobAcknowledged)
    .where(and(eq(batchJobs.status, 'failed'), isUnresolved, isUnacknowledged))
    .groupBy(batchJobs.id)
    .orderBy(...LATEST_ENDED)
    .limit(LIMIT)
  return jobs.map(({ id }) => id)
}

/** Finds, by job, the contractors of any organisation whose addresses are the recipients of unresolved items. */
async function findPayees(db: Database, jobs: readonly string[]) {
  if (jobs.length === 0) return new Map<string, never>()
  const rows = await db
    .selectDistinct({
      job: batchItems.job,
      id: contractors.id,
      name: contractors.name,
      organisation: contractors.organisation,
    })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .innerJoin(contractors, eq(contractors.address, batchItems.recipient))
    .where(and(inArray(batchItems.job, [...jobs]), isUnresolved, isNull(contractors.deletedAt)))
  return Map.groupBy(rows, ({ job }) => job)
}

const isOf = (only: { job: string } | { batch: string }) =>
  'job' in only ? eq(batchJobs.id, only.job) : eq(batchJobs.batch, only.batch)

/**
 * Lists the running jobs without recent progress.
 * @param only the job, or the batch of a run, to report on alone, acknowledged or not
 */
export async function listStalledJobs(
  db: Database,
  now: Date,
  only?: { job: string } | { batch: string },
): Promise<Attention[]> {
  const movedAt = sql`max(greatest(${batchItems.queuedAt}, ${batchItems.sentAt}, ${batchItems.settledAt}))`
  const moving = db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
      run: batchJobs.batch,
      movedAt: movedAt.mapWith(batchItems.queuedAt).as('moved_at'),
      left: sql`count(*) filter (where ${batchItems.settledAt} is null)`.mapWith(Number).as('left'),
    })
    .from(batchJobs)
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .where(and(eq(batchJobs.status, 'running'), only && isOf(only)))
    .groupBy(batchJobs.id)
    .having(sql`${movedAt} < ${jobLimit(now).toISOString()}::timestamptz`)
    .as('moving')
  const jobs = await db
    .select({
      job: moving._.selectedFields,
      batch: { id: batches.id, name: batches.name },
      employer: { id: organisations.id, name: organisations.name },
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(moving)
    .leftJoin(batches, eq(batches.id, moving.run))
    .leftJoin(organisations, eq(organisations.id, batches.organisation))
    .leftJoin(acknowledgementRows, acknowledges('jobStalled', moving.id, moving.movedAt))
    .where(only ? undefined : isUnacknowledged)
    .orderBy(moving.movedAt)
    .limit(LIMIT)
  const users = await findUsersOf(
    db,
    jobs.map(({ job }) => job),
  )
  return jobs.map(({ job: { id, kind, sub, movedAt: since, left }, batch, employer, acknowledgement }) => ({
    key: `slow ${id}`,
    ...CONDITIONS.jobStalled.notice,
    since,
    ...subjectOf({ id, batch }),
    what: `${left} ${left === 1 ? 'transfer' : 'transfers'}${batch ? ' of its run' : ''} unfinished`,
    isOngoing: true,
    why: 'none of its transfers was sent or settled since',
    actor: 'operator',
    remedy: 'Open Jobs: each channel shows whether a relay runs it, and why it cannot pay.',
    ...(employer ? { organisation: employer } : users({ kind, sub })),
    acknowledgeable: { condition: 'jobStalled', subject: id, lastEvent: since },
    acknowledgement,
    page: `/jobs/${id}`,
  }))
}

/** What names a job in its title: the batch that it pays, or else its id. */
const subjectOf = ({ id, batch }: { id: string; batch: NamedRecord | null }) =>
  batch ? { batch } : { name: `Relay job ${id.slice(0, 8)}` }
