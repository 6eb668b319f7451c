import { and, count, eq, gt, gte, inArray, isNull, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { type Attention, NAMES_SHOWN } from './attention.ts'
import { explainTransfer } from './explanation.ts'
import { findUserOrganisations } from './job-users.ts'
import { outcomeOf, paysPayout, transferRows } from './transfer-rows.ts'

/** What failed longer ago is counted, and not told one by one: an employer may never send it again. */
const RECENT_MS = 7 * 24 * 3_600_000

const MOST = 20

/** The batches with failed payouts, and how many more there are whose payouts failed longer ago. */
export async function listFailedBatches(db: Database, now: Date): Promise<{ items: Attention[]; older: number }> {
  const failedAt = sql`coalesce(${transferRows.settledAt}, ${payouts.createdAt})`
  const [rows, [all]] = await Promise.all([
    db
      .select({
        id: batches.id,
        name: batches.name,
        organisation: organisations.id,
        organisationName: organisations.name,
        batchStatus: batches.status,
        contractor: contractors.id,
        contractorName: contractors.name,
        error: payouts.error,
        failedAt: failedAt.mapWith(payouts.createdAt),
        outcome: outcomeOf,
      })
      .from(batches)
      .innerJoin(organisations, eq(organisations.id, batches.organisation))
      .innerJoin(payouts, and(eq(payouts.batch, batches.id), eq(payouts.status, 'failed')))
      .innerJoin(contractors, eq(contractors.id, payouts.contractor))
      .leftJoin(transferRows, paysPayout)
      .where(and(gt(batches.failedCount, 0), sql`${failedAt} >= ${recent(now)}`))
      .orderBy(sql`${failedAt} desc`)
      .limit(1_000),
    db.select({ count: count() }).from(batches).where(gt(batches.failedCount, 0)),
  ])
  const grouped = [...Map.groupBy(rows, ({ id }) => id).values()]
  const items = grouped.slice(0, MOST).flatMap((failures): Attention[] => {
    const [newest] = failures
    if (!newest) return []
    const meaning = newest.outcome ? explainTransfer(newest.outcome) : ''
    return [
      {
        key: `failed ${newest.id}`,
        level: 'bad',
        since: failures.at(-1)?.failedAt,
        what:
          newest.batchStatus === 'failed'
            ? 'The batch failed'
            : counted(failures.length, 'payout failed', 'payouts failed'),
        why: meaning || (newest.error ?? ''),
        remedy: `Nothing for you to do: the employer sends the ${failures.length === 1 ? 'payout' : 'payouts'} again.`,
        actor: 'customer',
        organisation: { id: newest.organisation, name: newest.organisationName },
        batch: { id: newest.id, name: newest.name },
        contractors: failures
          .slice(0, NAMES_SHOWN)
          .map((failure) => ({ id: failure.contractor, name: failure.contractorName })),
        moreContractors: Math.max(0, failures.length - NAMES_SHOWN),
        page: `/batches/${newest.id}?status=failed`,
      },
    ]
  })
  return { items, older: Math.max(0, (all?.count ?? 0) - items.length) }
}

/** The jobs of the relay that failed lately. */
export async function listFailedJobs(db: Database, now: Date): Promise<Attention[]> {
  const jobs = await db
    .select({
      id: batchJobs.id,
      kind: batchJobs.userKind,
      sub: batchJobs.userSub,
      // The error of a job names the item by its place from 0, and the pages count from 1.
      error: sql<string | null>`coalesce(min(${batchItems.error}), ${batchJobs.error})`,
      endedAt: batchJobs.endedAt,
      failed: sql`count(*) filter (where ${batchItems.status} = 'failed')`.mapWith(Number),
      all: count(),
    })
    .from(batchJobs)
    .innerJoin(batchItems, eq(batchItems.job, batchJobs.id))
    .where(and(eq(batchJobs.status, 'failed'), gte(batchJobs.endedAt, new Date(now.getTime() - RECENT_MS))))
    .groupBy(batchJobs.id)
    .orderBy(sql`${batchJobs.endedAt} desc`)
    .limit(MOST)
  const users = await findUserOrganisations(db, jobs)
  const unpaid = await findUnpaid(
    db,
    jobs.map(({ id }) => id),
  )
  return jobs.map(({ id, kind, sub, error, endedAt, failed, all }) => {
    const organisation = users.get(`${kind}:${sub}`)
    const contractors = (unpaid.get(id) ?? []).filter((one) => one.organisation === organisation?.id)
    return {
      key: `job ${id}`,
      level: 'bad',
      since: endedAt ?? undefined,
      what: `${counted(failed, 'transfer', 'transfers')} of ${all} of a relay job failed`,
      why: error ?? '',
      remedy:
        'Where no channel has enough, see that more USDC is sent to the channels of the relay (Jobs lists them). The employer then starts a new job with what failed.',
      actor: 'customer',
      ...(organisation && { organisation }),
      contractors: contractors.slice(0, NAMES_SHOWN),
      moreContractors: Math.max(0, contractors.length - NAMES_SHOWN),
      page: `/jobs?q=${id}`,
    }
  })
}

/** The contractors of any organisation with the addresses that failed items of jobs were for, by job. */
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
    .innerJoin(contractors, eq(contractors.address, batchItems.recipient))
    .where(and(inArray(batchItems.job, [...jobs]), eq(batchItems.status, 'failed'), isNull(contractors.deletedAt)))
  return Map.groupBy(rows, ({ job }) => job)
}

const recent = (now: Date) => sql`${new Date(now.getTime() - RECENT_MS).toISOString()}::timestamptz`

const counted = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`
