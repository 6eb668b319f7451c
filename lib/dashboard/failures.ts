import { and, count, desc, eq, gt, gte, inArray, isNull, lte, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Attention, LISTED_FOR_MS, NAMES_SHOWN } from './attention.ts'
import { CONDITIONS } from './conditions.ts'
import { adviseOn, explainTransfer } from './explanation.ts'
import { outcomeOf, paysPayout, transferRows } from './transfer-rows.ts'
import { isShort, isUnpaid } from './unpaid-items.ts'
import { findUserOrganisations } from './users.ts'

const LIMIT = 20

/**
 * Lists at most 20 batches with recently failed payouts, and counts the other batches with failed payouts.
 * @param only the id of a batch to list alone, however old its failures are
 */
export async function listFailedBatches(
  db: Database,
  now: Date,
  only?: string,
): Promise<{ items: Attention[]; others: number }> {
  const failures = failuresOf(db, only)
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
        last: failures.last,
        outcome: outcomeOf,
      })
      .from(failures)
      .innerJoin(payouts, eq(payouts.id, failures.payout))
      .innerJoin(batches, eq(batches.id, payouts.batch))
      .innerJoin(organisations, eq(organisations.id, batches.organisation))
      .innerJoin(contractors, eq(contractors.id, payouts.contractor))
      .leftJoin(transferRows, paysPayout)
      .where(and(lte(failures.place, NAMES_SHOWN), only ? undefined : sql`${failures.last} >= ${recent(now)}`))
      .orderBy(desc(failures.last), batches.id, failures.place)
      .limit(LIMIT * NAMES_SHOWN),
    only ? [] : db.select({ count: count() }).from(batches).where(gt(batches.failedCount, 0)),
  ])
  const byBatch = [...Map.groupBy(rows, ({ id }) => id).values()]
  const items = byBatch.slice(0, LIMIT).flatMap((failed): Attention[] => {
    const [newest] = failed
    if (!newest) return []
    const meaning = newest.outcome ? explainTransfer(newest.outcome) : ''
    return [
      {
        ...CONDITIONS.payoutsFailed.notice,
        key: `failed ${newest.id}`,
        since: newest.first,
        ...(only === undefined && {
          until: { event: 'each is resent or canceled', at: new Date(newest.last.getTime() + LISTED_FOR_MS) },
        }),
        what: `${newest.failedCount} of ${counted(newest.payoutCount, 'payout', 'payouts')} of a batch failed`,
        why: meaning || (newest.error ?? ''),
        remedy: `${FAILURES_SHOWN} can send ${newest.failedCount === 1 ? 'the payout' : 'the payouts'} again${newest.outcome ? adviseOn(newest.outcome) : ''}.`,
        actor: 'employer',
        organisation: { id: newest.organisation, name: newest.organisationName },
        batch: { id: newest.id, name: newest.name },
        contractors: failed.map((failure) => ({ id: failure.contractor, name: failure.contractorName })),
        moreContractors: Math.max(0, newest.failedCount - NAMES_SHOWN),
        page: `/batches/${newest.id}?status=failed`,
      },
    ]
  })
  return { items, others: Math.max(0, (all?.count ?? 0) - items.length) }
}

/** Selects failed payouts with their rank in the batch, newest first, and the batch's first and last failure. */
function failuresOf(db: Database, only: string | undefined) {
  const { id, batch, status, createdAt, sequence } = payouts
  const failedAt = sql`coalesce(${transferRows.settledAt}, ${createdAt})`
  const rank = sql`row_number() over (partition by ${batch} order by ${failedAt} desc, ${sequence})`
  return db
    .select({
      payout: id,
      first: sql`min(${failedAt}) over (partition by ${batch})`.mapWith(createdAt).as('first'),
      last: sql`max(${failedAt}) over (partition by ${batch})`.mapWith(createdAt).as('last'),
      place: rank.mapWith(Number).as('place'),
    })
    .from(batches)
    .innerJoin(payouts, and(eq(batch, batches.id), eq(status, 'failed')))
    .leftJoin(transferRows, paysPayout)
    .where(and(gt(batches.failedCount, 0), only ? eq(batches.id, only) : undefined))
    .as('failures')
}

const FAILURES_SHOWN = 'The application shows what failed and'

const FAILED = {
  actor: 'employer',
  remedy: `${FAILURES_SHOWN} can start a new job for only that.`,
} as const

const UNKNOWN = {
  actor: 'operator',
  remedy:
    'Look up the unknown hashes in an explorer of the network, and tell the employer, who then pays only what was not paid.',
} as const

const FILLED = {
  actor: 'employer',
  remedy: `${FAILURES_SHOWN} can start a new job for only that. The channels have received more USDC since then (see Jobs).`,
} as const

const SHORT = {
  actor: 'operator',
  remedy:
    'Send more USDC to the relay’s channels: the Jobs page shows which, and how. Then ask the employer to start a new job for the failed transfers.',
} as const

const TAMPERED = {
  actor: 'operator',
  why: 'manifest-invalid: the database differs from what the employer has signed, or the delegation was replaced',
  remedy:
    'Compare the rows of the run with its manifest: unless the employer has delegated anew, somebody has changed them.',
} as const

/** Lists the relay jobs that failed recently, except those whose failed items were all paid by later transfers. */
export async function listFailedJobs(db: Database, now: Date): Promise<Attention[]> {
  const jobs = await db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
      // A job's own error counts items from 0, and the pages count from 1.
      error: sql<string | null>`coalesce(min(${batchItems.error}), ${batchJobs.error})`,
      endedAt: batchJobs.endedAt,
      failed: sql`count(*) filter (where ${isUnpaid})`.mapWith(Number),
      wasShort: sql<boolean>`bool_or(${isUnpaid} and cardinality(${batchItems.unable}) > 0)`,
      isShort: sql<boolean>`bool_or(${isUnpaid} and ${isShort})`,
      isUnknown: sql<boolean>`bool_or(${batchItems.status} = 'unknown')`,
      isTampered: sql<boolean>`bool_or(${isUnpaid} and ${batchItems.error} = 'manifest-invalid')`,
      all: count(),
    })
    .from(batchJobs)
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .where(and(eq(batchJobs.status, 'failed'), gte(batchJobs.endedAt, new Date(now.getTime() - LISTED_FOR_MS))))
    .groupBy(batchJobs.id)
    .having(sql`bool_or(${isUnpaid})`)
    .orderBy(sql`${batchJobs.endedAt} desc`)
    .limit(LIMIT)
  const users = await findUserOrganisations(db, jobs)
  const unpaid = await findUnpaid(
    db,
    jobs.map(({ id }) => id),
  )
  return jobs.map(({ id, kind, sub, error, endedAt, failed, wasShort, isShort, isUnknown, isTampered, all }) => {
    const organisation = users.get(`${kind}:${sub}`)
    const contractors = (unpaid.get(id) ?? []).filter((one) => one.organisation === organisation?.id)
    return {
      ...CONDITIONS.jobFailed.notice,
      key: `job ${id}`,
      since: endedAt ?? undefined,
      what: `${failed} of ${counted(all, 'transfer', 'transfers')} of a relay job failed`,
      why: wasShort ? 'no channel of the relay had enough USDC' : (error ?? ''),
      ...(isTampered ? TAMPERED : isUnknown ? UNKNOWN : isShort ? SHORT : wasShort ? FILLED : FAILED),
      ...(endedAt && {
        until: { event: 'later transfers pay the same people', at: new Date(endedAt.getTime() + LISTED_FOR_MS) },
      }),
      ...(organisation && { organisation }),
      contractors: contractors.slice(0, NAMES_SHOWN),
      moreContractors: Math.max(0, contractors.length - NAMES_SHOWN),
      page: `/jobs?q=${id}`,
    }
  })
}

/** Finds, by job, the contractors of any organisation whose addresses are the recipients of unpaid items. */
async function findUnpaid(db: Database, jobs: readonly string[]) {
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
    .where(and(inArray(batchItems.job, [...jobs]), isUnpaid, isNull(contractors.deletedAt)))
  return Map.groupBy(rows, ({ job }) => job)
}

const recent = (now: Date) => sql`${new Date(now.getTime() - LISTED_FOR_MS).toISOString()}::timestamptz`

const counted = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`
