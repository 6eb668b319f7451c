import { and, count, desc, eq, gt, inArray, isNull, lte, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { ACKNOWLEDGEMENT, acknowledgementRows, acknowledges, isUnacknowledged } from './acknowledgements.ts'
import { type Attention, NAMES_SHOWN } from './attention.ts'
import { CONDITIONS } from './conditions.ts'
import { adviseOn, explainPayout } from './explanation.ts'
import { outcomeOf, paysPayout, transferRows } from './transfer-rows.ts'
import { findUserOrganisations } from './users.ts'

const LIMIT = 20
/** The batches beyond the listed ones are counted up to this number. */
const MOST_COUNTED = 1_000

/**
 * Lists at most 20 batches with failed payouts, and counts the others. A batch that was acknowledged is listed again
 * once another payout fails.
 * @param only the id of a batch to list alone, acknowledged or not
 */
export async function listFailedBatches(db: Database, only?: string): Promise<{ items: Attention[]; others: number }> {
  const isAcknowledged = acknowledges('payoutsFailed', batches.id, batches.failedAt)
  const unacknowledged = db
    .select({ id: batches.id })
    .from(batches)
    .leftJoin(acknowledgementRows, isAcknowledged)
    .where(and(gt(batches.failedCount, 0), isUnacknowledged))
    .orderBy(desc(batches.failedAt), batches.id)
    .$dynamic()
  const ids = only ? [only] : (await unacknowledged.limit(LIMIT)).map(({ id }) => id)
  const failures = failuresOf(db, ids)
  const [rows, [all]] = await Promise.all([
    db
      .select({
        id: batches.id,
        name: batches.name,
        organisation: organisations.id,
        organisationName: organisations.name,
        payoutCount: batches.payoutCount,
        failedCount: batches.failedCount,
        contractor: contractors.id,
        contractorName: contractors.name,
        error: payouts.error,
        first: failures.first,
        last: batches.failedAt,
        outcome: outcomeOf,
        acknowledgement: ACKNOWLEDGEMENT,
      })
      .from(failures)
      .innerJoin(payouts, eq(payouts.id, failures.payout))
      .innerJoin(batches, eq(batches.id, payouts.batch))
      .innerJoin(organisations, eq(organisations.id, batches.organisation))
      .innerJoin(contractors, eq(contractors.id, payouts.contractor))
      .leftJoin(transferRows, paysPayout)
      .leftJoin(acknowledgementRows, isAcknowledged)
      .where(lte(failures.place, NAMES_SHOWN))
      .orderBy(desc(batches.failedAt), batches.id, failures.place),
    ids.length < LIMIT
      ? []
      : db.select({ count: count() }).from(unacknowledged.limit(MOST_COUNTED).as('unacknowledged')),
  ])
  const byBatch = [...Map.groupBy(rows, ({ id }) => id).values()]
  const items = byBatch.flatMap((failed): Attention[] => {
    const [newest] = failed
    if (!newest) return []
    const failures = newest.failedCount === 1 ? 'the failed payout' : `the ${newest.failedCount} failed payouts`
    const step = `send ${failures} again${adviseOn(newest)}`
    return [
      {
        ...CONDITIONS.payoutsFailed.notice,
        key: `failed ${newest.id}`,
        since: newest.first,
        what: `${newest.failedCount} of ${counted(newest.payoutCount, 'payout', 'payouts')} failed`,
        why: explainPayout(newest) || (newest.error ?? ''),
        remedy: `Ask the employer to ${step}.`,
        request: `Please open your payroll application and ${step}.`,
        actor: 'employer',
        organisation: { id: newest.organisation, name: newest.organisationName },
        batch: { id: newest.id, name: newest.name },
        contractors: failed.map((failure) => ({ id: failure.contractor, name: failure.contractorName })),
        moreContractors: Math.max(0, newest.failedCount - NAMES_SHOWN),
        ...(newest.last && {
          acknowledgeable: { condition: 'payoutsFailed', subject: newest.id, lastEvent: newest.last },
        }),
        acknowledgement: newest.acknowledgement,
        page: `/batches/${newest.id}?status=failed`,
      },
    ]
  })
  return { items, others: Math.max(0, (all?.count ?? 0) - items.length) }
}

/** Selects the failed payouts of batches with their rank in the batch, newest first, and the batch's first failure. */
function failuresOf(db: Database, ids: readonly string[]) {
  const { id, batch, status, createdAt, sequence } = payouts
  const failedAt = sql`coalesce(${transferRows.settledAt}, ${createdAt})`
  const rank = sql`row_number() over (partition by ${batch} order by ${failedAt} desc, ${sequence})`
  return db
    .select({
      payout: id,
      batch,
      first: sql`min(${failedAt}) over (partition by ${batch})`.mapWith(createdAt).as('first'),
      place: rank.mapWith(Number).as('place'),
    })
    .from(payouts)
    .leftJoin(transferRows, paysPayout)
    .where(and(inArray(batch, [...ids]), eq(status, 'failed')))
    .as('failures')
}

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
  remedy: 'Compare the rows of the run with its manifest, and ask the employer whether it has delegated anew.',
  request: 'Please tell us whether you replaced the delegation of this run after you signed it.',
} as const

/**
 * Whether an item still needs attention. An item of a job does, because nothing says whether the employer has paid it
 * in another way. An item of a run does while its payout is `ready` and no later run has it: a failed payout, or one
 * whose outcome is unknown, is listed with its batch or transfer.
 */
const isUnresolved: SQL = sql`(${batchItems.status} in ('failed', 'unknown') and (${batchItems.payout} is null or (
  exists (select from ${payouts} where ${payouts.id} = ${batchItems.payout} and ${payouts.status} = 'ready')
  and not exists (select from ${batchItems} as later join ${batchJobs} as later_job on later_job.id = later.job
    where later.payout = ${batchItems.payout} and later_job.created_at > ${batchJobs.createdAt}))))`

/**
 * Lists at most 20 relay jobs with unresolved items that no operator has acknowledged.
 * @param only the id of a job to list alone, acknowledged or not
 */
export async function listFailedJobs(db: Database, only?: string): Promise<Attention[]> {
  const ids = only ? [only] : await findFailedJobs(db)
  const jobs = await db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
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
    .leftJoin(acknowledgementRows, isJobAcknowledged)
    .where(and(eq(batchJobs.status, 'failed'), inArray(batchJobs.id, ids)))
    .groupBy(batchJobs.id, acknowledgementRows.condition, acknowledgementRows.subject)
    .having(sql`bool_or(${isUnresolved})`)
    .orderBy(...LATEST_ENDED)
  const users = await findUserOrganisations(db, jobs)
  const payees = await findPayees(
    db,
    jobs.map(({ id }) => id),
  )
  return jobs.map(({ id, kind, sub, error, endedAt, failed, isShort, isUnknown, isTampered, all, acknowledgement }) => {
    const organisation = users.get(`${kind}:${sub}`)
    const contractors = (payees.get(id) ?? []).filter((one) => one.organisation === organisation?.id)
    return {
      ...CONDITIONS.jobFailed.notice,
      key: `job ${id}`,
      since: endedAt ?? undefined,
      name: `Relay job ${id.slice(0, 8)}`,
      what: `${failed} of ${counted(all, 'transfer', 'transfers')} failed`,
      why: error ?? '',
      ...(isTampered ? TAMPERED : isUnknown ? UNKNOWN : isShort ? SHORT : FAILED),
      ...(organisation && { organisation }),
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

const counted = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`
