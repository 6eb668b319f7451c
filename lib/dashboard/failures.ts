import { and, count, desc, eq, gt, gte, inArray, isNull, lte, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Attention, NAMES_SHOWN, TOLD_FOR_MS } from './attention.ts'
import { adviseOn, explainTransfer } from './explanation.ts'
import { outcomeOf, paysPayout, transferRows } from './transfer-rows.ts'
import { isShort, isUnpaid } from './unpaid-items.ts'
import { findUserOrganisations } from './users.ts'

const MOST = 20

/**
 * The batches whose payouts failed lately, at most 20, and how many other batches have failed payouts. With `only`, the id
 * of a batch, it is listed alone, and no others are counted.
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
      .limit(MOST * NAMES_SHOWN),
    only ? [] : db.select({ count: count() }).from(batches).where(gt(batches.failedCount, 0)),
  ])
  const grouped = [...Map.groupBy(rows, ({ id }) => id).values()]
  const items = grouped.slice(0, MOST).flatMap((named): Attention[] => {
    const [newest] = named
    if (!newest) return []
    const meaning = newest.outcome ? explainTransfer(newest.outcome) : ''
    return [
      {
        key: `failed ${newest.id}`,
        level: 'bad',
        since: newest.first,
        ...(only === undefined && {
          until: { event: 'each is sent again or canceled', at: new Date(newest.last.getTime() + TOLD_FOR_MS) },
        }),
        what: `${newest.failedCount} of ${counted(newest.payoutCount, 'payout', 'payouts')} of a batch failed`,
        why: meaning || (newest.error ?? ''),
        remedy: `${FAILURES_SHOWN} can send ${newest.failedCount === 1 ? 'the payout' : 'the payouts'} again${newest.outcome ? adviseOn(newest.outcome) : ''}.`,
        actor: 'employer',
        organisation: { id: newest.organisation, name: newest.organisationName },
        batch: { id: newest.id, name: newest.name },
        contractors: named.map((failure) => ({ id: failure.contractor, name: failure.contractorName })),
        moreContractors: Math.max(0, newest.failedCount - NAMES_SHOWN),
        page: `/batches/${newest.id}?status=failed`,
      },
    ]
  })
  return { items, others: Math.max(0, (all?.count ?? 0) - items.length) }
}

/**
 * The failed payouts of every batch, or of the batch `only`, with their place in it, newest first, and the times of its
 * first and its last failure.
 */
function failuresOf(db: Database, only: string | undefined) {
  const { id, batch, status, createdAt, sequence } = payouts
  const failedAt = sql`coalesce(${transferRows.settledAt}, ${createdAt})`
  const placed = sql`row_number() over (partition by ${batch} order by ${failedAt} desc, ${sequence})`
  return db
    .select({
      payout: id,
      first: sql`min(${failedAt}) over (partition by ${batch})`.mapWith(createdAt).as('first'),
      last: sql`max(${failedAt}) over (partition by ${batch})`.mapWith(createdAt).as('last'),
      place: placed.mapWith(Number).as('place'),
    })
    .from(batches)
    .innerJoin(payouts, and(eq(batch, batches.id), eq(status, 'failed')))
    .leftJoin(transferRows, paysPayout)
    .where(and(gt(batches.failedCount, 0), only ? eq(batches.id, only) : undefined))
    .as('failures')
}

const FAILURES_SHOWN = 'The application shows what failed, and'

const FAILED = {
  actor: 'employer',
  remedy: `${FAILURES_SHOWN} can start a new job with that alone.`,
} as const

const UNKNOWN = {
  actor: 'operator',
  remedy:
    'Look for the hash of what is unknown on an explorer of the network, and tell the employer, who pays again only what was not paid.',
} as const

const FILLED = {
  actor: 'employer',
  remedy: `${FAILURES_SHOWN} can start a new job with that alone. The channel accounts have been sent more USDC since then (see Jobs).`,
} as const

const SHORT = {
  actor: 'operator',
  remedy:
    'Send more USDC to the channels of the relay: the page of jobs says to which, and how. Then ask the employer to start a new job with what failed.',
} as const

/** The jobs of the relay that failed lately, unless later transfers have paid all that failed in them. */
export async function listFailedJobs(db: Database, now: Date): Promise<Attention[]> {
  const jobs = await db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
      // The error of a job names the item by its place from 0, and the pages count from 1.
      error: sql<string | null>`coalesce(min(${batchItems.error}), ${batchJobs.error})`,
      endedAt: batchJobs.endedAt,
      failed: sql`count(*) filter (where ${isUnpaid})`.mapWith(Number),
      wasShort: sql<boolean>`bool_or(${isUnpaid} and cardinality(${batchItems.unable}) > 0)`,
      isShort: sql<boolean>`bool_or(${isUnpaid} and ${isShort})`,
      isUnknown: sql<boolean>`bool_or(${batchItems.status} = 'unknown')`,
      all: count(),
    })
    .from(batchJobs)
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .where(and(eq(batchJobs.status, 'failed'), gte(batchJobs.endedAt, new Date(now.getTime() - TOLD_FOR_MS))))
    .groupBy(batchJobs.id)
    .having(sql`bool_or(${isUnpaid})`)
    .orderBy(sql`${batchJobs.endedAt} desc`)
    .limit(MOST)
  const users = await findUserOrganisations(db, jobs)
  const unpaid = await findUnpaid(
    db,
    jobs.map(({ id }) => id),
  )
  return jobs.map(({ id, kind, sub, error, endedAt, failed, wasShort, isShort, isUnknown, all }) => {
    const organisation = users.get(`${kind}:${sub}`)
    const contractors = (unpaid.get(id) ?? []).filter((one) => one.organisation === organisation?.id)
    return {
      key: `job ${id}`,
      level: 'bad',
      since: endedAt ?? undefined,
      what: `${failed} of ${counted(all, 'transfer', 'transfers')} of a relay job failed`,
      why: wasShort ? 'no channel account of the relay had enough USDC for it' : (error ?? ''),
      ...(isUnknown ? UNKNOWN : isShort ? SHORT : wasShort ? FILLED : FAILED),
      ...(endedAt && {
        until: { event: 'later transfers pay the same people', at: new Date(endedAt.getTime() + TOLD_FOR_MS) },
      }),
      ...(organisation && { organisation }),
      contractors: contractors.slice(0, NAMES_SHOWN),
      moreContractors: Math.max(0, contractors.length - NAMES_SHOWN),
      page: `/jobs?q=${id}`,
    }
  })
}

/** The contractors, of any organisation, whose addresses the unpaid items of these jobs were meant for, by job. */
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

const recent = (now: Date) => sql`${new Date(now.getTime() - TOLD_FOR_MS).toISOString()}::timestamptz`

const counted = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`
