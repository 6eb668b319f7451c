import { and, count, desc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { type LineOutcome, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, MAX_LISTED, NAMES_SHOWN, type NamedRecord } from './attention.ts'
import { askTo, describeCauses, stepAfter } from './causes.ts'
import { CONDITIONS } from './conditions.ts'
import { explainLine } from './explanation.ts'
import { countOf } from './list.ts'
import { findUsersOf } from './users.ts'

const ANOTHER_BATCH = 'pay only those payees, from its own balance and in a batch of payouts'
const NO_NEW_JOB = ' A new job would begin with other payees, who may have been paid.'

const UNKNOWN = askTo(
  'check with the payees which payments arrived, and pay only the others, in a batch of payouts',
  NO_NEW_JOB,
)

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
export const isUnresolved: SQL = sql`(${relayLines.outcome} in ('failed', 'unknown') and (${relayLines.payout} is null or (
  exists (select from ${payouts} where ${payouts.id} = ${relayLines.payout} and ${payouts.status} = 'ready')
  and not exists (select from ${relayLines} as later join ${relayJobs} as later_job on later_job.id = later.job
    where later.payout = ${relayLines.payout} and later_job.created_at > ${relayJobs.createdAt}))))`

/**
 * Lists at most 20 relay jobs with unresolved items that no operator has acknowledged.
 * @param only the job, or the batch of a run, to report on alone, acknowledged or not
 */
export async function listFailedJobs(db: Database, only?: { job: string } | { batch: string }): Promise<Attention[]> {
  const isListed = only ? isOf(only) : inArray(relayJobs.id, await findFailedJobs(db))
  const jobs = await db
    .select({
      id: relayJobs.id,
      kind: relayJobs.userKind,
      sub: relayJobs.userSub,
      batch: { id: batches.id, name: batches.name },
      employer: { id: organisations.id, name: organisations.name },
      endedAt: relayJobs.endedAt,
      failed: countOf(sql`${isUnresolved} and ${relayLines.outcome} = 'failed'`),
      unknown: countOf(sql`${isUnresolved} and ${relayLines.outcome} = 'unknown'`),
      isTampered: sql<boolean>`bool_or(${isUnresolved} and ${relayLines.error} = 'manifest-invalid')`,
      all: count(),
      acknowledgement: ACKNOWLEDGEMENT,
    })
    .from(relayJobs)
    .innerJoin(relayLines, eq(relayLines.job, relayJobs.id))
    .leftJoin(batches, eq(batches.id, relayJobs.batch))
    .leftJoin(organisations, eq(organisations.id, batches.organisation))
    .leftJoin(acknowledgementRows, isJobAcknowledged)
    .where(and(eq(relayJobs.status, 'failed'), isListed))
    .groupBy(relayJobs.id, batches.id, organisations.id, acknowledgementRows.condition, acknowledgementRows.subject)
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

const isJobAcknowledged = acknowledges('jobFailed', relayJobs.id, relayJobs.endedAt)
const LATEST_ENDED = [desc(relayJobs.endedAt), relayJobs.id]

/** Finds at most 20 unacknowledged jobs, starting from the few unresolved items: a job may have thousands of others. */
async function findFailedJobs(db: Database): Promise<string[]> {
  const jobs = await db
    .select({ id: relayJobs.id })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
    .leftJoin(acknowledgementRows, isJobAcknowledged)
    .where(and(eq(relayJobs.status, 'failed'), isUnresolved, isUnacknowledged))
    .groupBy(relayJobs.id)
    .orderBy(...LATEST_ENDED)
    .limit(MAX_LISTED)
  return jobs.map(({ id }) => id)
}

/** Counts the unresolved items of jobs by why they failed, by job. */
async function findCauses(db: Database, jobs: readonly string[]) {
  if (jobs.length === 0) return new Map<string, never>()
  const rows = await db
    .select({
      job: relayLines.job,
      outcome: relayLines.outcome,
      error: relayLines.error,
      // The first channel that had too little.
      short: sql<string | null>`min(${relayLines.unable}[1])`,
      count: count(),
    })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
    .where(and(inArray(relayLines.job, [...jobs]), isUnresolved))
    .groupBy(relayLines.job, relayLines.outcome, relayLines.error)
  const causes = rows.map((row) => ({ job: row.job, count: row.count, ...causeOf(row) }))
  return Map.groupBy(causes, ({ job }) => job)
}

function causeOf({
  outcome,
  error,
  short,
}: {
  outcome: LineOutcome | null
  error: string | null
  short: string | null
}) {
  if (outcome === 'unknown') return explainLine('history-lost')
  if (short === null || error !== 'channels-short') return explainLine(error ?? '')
  const also = `For later jobs, send USDC by confidential transfer to the relay channel ${short}`
  return { meaning: 'no relay channel had enough USDC', advice: { ...explainLine('').advice, also } }
}

/** Finds the recipients of unresolved items by job, with the contractors of any organisation who have the address. */
async function findPayees(db: Database, jobs: readonly string[]) {
  if (jobs.length === 0) return new Map<string, never>()
  const isContractor = and(eq(contractors.address, relayLines.recipient), isNull(contractors.deletedAt))
  const { id, name, organisation } = contractors
  const rows = await db
    .selectDistinct({ job: relayLines.job, recipient: relayLines.recipient, id, name, organisation })
    .from(relayLines)
    .innerJoin(relayJobs, eq(relayJobs.id, relayLines.job))
    .leftJoin(contractors, isContractor)
    .where(and(inArray(relayLines.job, [...jobs]), isUnresolved))
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
  'job' in only ? eq(relayJobs.id, only.job) : eq(relayJobs.batch, only.batch)

/** What names a job in its title: the batch that it pays, or else its id. */
export const subjectOf = ({ id, batch }: { id: string; batch: NamedRecord | null }) =>
  batch ? { batch } : { name: `Relay job ${id.slice(0, 8)}` }
