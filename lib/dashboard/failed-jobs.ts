import { and, count, desc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs, type ItemStatus } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { ITEM_FAILURES } from '#lib/relay/item-error.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED, NAMES_SHOWN, type NamedRecord } from './attention.ts'
import { askTo, describeCauses, stepAfter } from './causes.ts'
import { CONDITIONS } from './conditions.ts'
import { explainItem } from './explanation.ts'
import { countOf } from './list.ts'
import { findUsersOf } from './users.ts'

const ANOTHER_BATCH = 'pay only those payees, from its own balance and in a batch of payouts'
const NO_NEW_JOB = ' A new job would begin with other payees, who may have been paid.'

const UNKNOWN = {
  ...askTo('check with the payees which payments arrived, and pay only the others, in a batch of payouts', NO_NEW_JOB),
  actor: 'operator',
} as const

const TAMPERED = {
  actor: 'operator',
  why: 'manifest-invalid: the database differs from what the employer has signed, or the delegation or the account’s signers were changed',
  remedy:
    'Follow docs/operate.md, “A run was stopped as changed”: first, tell the employer, by a contact that is not from this service, to revoke the delegations of this batch and pay nothing of it.',
  telling:
    'Please revoke the delegations of this batch, and neither run nor pay it until you have compared each payee’s address, and what has been paid already, with your own records. Did you change its delegation, or your account’s signers, after you signed the run?',
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
      endedAt: batchJobs.endedAt,
      failed: countOf(sql`${isUnresolved} and ${batchItems.status} = 'failed'`),
      unknown: countOf(sql`${isUnresolved} and ${batchItems.status} = 'unknown'`),
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
  const ids = jobs.map(({ id }) => id)
  const [payees, causes] = await Promise.all([findPayees(db, ids), findCauses(db, ids)])
  return jobs.map((job) => {
    const { id, endedAt, failed, unknown, isTampered, all, acknowledgement } = job
    const failedFor = causes.get(id) ?? []
    const user = job.employer ? { organisation: job.employer } : users(job)
    return {
      ...CONDITIONS.jobFailed.notice,
      key: `job ${id}`,
      since: endedAt ?? undefined,
      ...subjectOf(job),
      what: describeEnds({
        failed,
        unknown,
        all: `${all} ${all === 1 ? 'transfer' : 'transfers'}${job.batch ? ' of its run' : ''}`,
      }),
      why: describeCauses(failedFor),
      ...(isTampered
        ? TAMPERED
        : unknown > 0
          ? UNKNOWN
          : job.batch
            ? stepAfter(failedFor, 'run the batch again')
            : stepAfter(failedFor, ANOTHER_BATCH, { note: NO_NEW_JOB })),
      ...user,
      ...namePayees(payees.get(id) ?? [], user.organisation?.id),
      ...(endedAt && { acknowledgeable: { condition: 'jobFailed', subject: id, lastEvent: endedAt } }),
      acknowledgement,
      page: `/jobs/${id}`,
    }
  })
}

function describeEnds({ failed, unknown, all }: { failed: number; unknown: number; all: string }): string {
  if (unknown === 0) return `${failed} of ${all} failed`
  const lost = `${unknown === 1 ? 'has' : 'have'} an unknown outcome`
  return failed === 0 ? `${unknown} of ${all} ${lost}` : `${failed} of ${all} failed, ${unknown} ${lost}`
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
    .limit(MAX_LISTED)
  return jobs.map(({ id }) => id)
}

/** Counts the unresolved items of jobs by why they failed, by job. */
async function findCauses(db: Database, jobs: readonly string[]) {
  if (jobs.length === 0) return new Map<string, never>()
  const rows = await db
    .select({
      job: batchItems.job,
      status: batchItems.status,
      error: batchItems.error,
      // The first channel that had too little.
      short: sql<string | null>`min(${batchItems.unable}[1])`,
      count: count(),
    })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .where(and(inArray(batchItems.job, [...jobs]), isUnresolved))
    .groupBy(batchItems.job, batchItems.status, batchItems.error)
  const causes = rows.map((row) => ({ job: row.job, count: row.count, ...causeOf(row) }))
  return Map.groupBy(causes, ({ job }) => job)
}

function causeOf({ status, error, short }: { status: ItemStatus; error: string | null; short: string | null }) {
  if (status === 'unknown') return explainItem('the RPC’s history begins after the transfer')
  if (short === null || error !== ITEM_FAILURES.shortOnEveryChannel) return explainItem(error ?? '')
  const also = `For later jobs, send USDC by confidential transfer to the relay channel ${short}`
  return { meaning: 'no relay channel had enough USDC', advice: { ...explainItem('').advice, also } }
}

/** Finds the recipients of unresolved items by job, with the contractors of any organisation who have the address. */
async function findPayees(db: Database, jobs: readonly string[]) {
  if (jobs.length === 0) return new Map<string, never>()
  const isContractor = and(eq(contractors.address, batchItems.recipient), isNull(contractors.deletedAt))
  const { id, name, organisation } = contractors
  const rows = await db
    .selectDistinct({ job: batchItems.job, recipient: batchItems.recipient, id, name, organisation })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .leftJoin(contractors, isContractor)
    .where(and(inArray(batchItems.job, [...jobs]), isUnresolved))
  return Map.groupBy(rows, ({ job }) => job)
}

/** The first payees in words: contractors of the organisation by name, and others by address. */
function namePayees(
  payees: readonly { recipient: string | null; id: string | null; name: string | null; organisation: string | null }[],
  organisation: string | undefined,
): Pick<Attention, 'contractors' | 'recipients' | 'moreContractors'> {
  const own = payees.flatMap((one) =>
    one.id !== null && one.name !== null && one.organisation === organisation
      ? [{ ...one, id: one.id, name: one.name }]
      : [],
  )
  const named = new Set(own.map(({ recipient }) => recipient))
  const others = new Set(payees.flatMap(({ recipient }) => (recipient && !named.has(recipient) ? [recipient] : [])))
  const shown = own.slice(0, NAMES_SHOWN)
  const recipients = [...others].slice(0, NAMES_SHOWN - shown.length)
  return {
    contractors: shown.map(({ id, name }) => ({ id, name })),
    recipients,
    moreContractors: own.length + others.size - shown.length - recipients.length,
  }
}

export const isOf = (only: { job: string } | { batch: string }) =>
  'job' in only ? eq(batchJobs.id, only.job) : eq(batchJobs.batch, only.batch)

/** What names a job in its title: the batch that it pays, or else its id. */
export const subjectOf = ({ id, batch }: { id: string; batch: NamedRecord | null }) =>
  batch ? { batch } : { name: `Relay job ${id.slice(0, 8)}` }
