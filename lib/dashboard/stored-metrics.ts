import { and, count, eq, inArray, or } from 'drizzle-orm'
import { refusalCounts, settlementCounts } from '#drizzle/schema/counts.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { quotas, sponsorFloats, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { counter, type Family, gauge } from '#lib/observability/metrics.ts'
import { EVER, isCounted, type SECONDS } from '#lib/transfers/counts.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { EVERYBODY, quotaDay } from '#lib/transfers/quota.ts'
import { LINE_STATE } from './line-state.ts'

const BOUNDS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 330] as const satisfies (typeof SECONDS)[number][]

/** Reads the metrics that come from the database: they are the same on every instance and survive restarts. */
export async function storedFamilies(db: Database, now: Date): Promise<Family[]> {
  return [...(await transferFamilies(db)), ...(await quotaFamilies(db, now)), ...(await jobFamilies(db))]
}

type SettlementCount = typeof settlementCounts.$inferSelect

async function transferFamilies(db: Database): Promise<Family[]> {
  const settled = await db.select().from(settlementCounts).where(eq(settlementCounts.hour, EVER))
  const open = await db.$count(transfers, and(eq(transfers.status, 'open'), isCounted))
  const refused = await db.select().from(refusalCounts)
  const ofStatus = Map.groupBy(settled, ({ status }) => status)
  return [
    counter('payroll_transfers_total', 'Decided sponsored transfers, by outcome.', {
      status: [...ofStatus].map(([status, rows]) => [status, sumOf(rows, 'count')]),
    }),
    gauge('payroll_transfers_open', 'Undecided sponsored transfers.', { status: [['open', open]] }),
    settlementFamily(ofStatus.get('succeeded') ?? []),
    counter('payroll_refusals_total', 'Transfers that the sponsor refused, by reason.', {
      reason: refused.map((row) => [row.reason, row.count]),
    }),
  ]
}

const sumOf = (rows: readonly SettlementCount[], of: 'count' | 'milliseconds') =>
  rows.reduce((sum, row) => sum + row[of], 0)

/** The buckets of a histogram are cumulative. */
function settlementFamily(succeeded: readonly SettlementCount[]): Family {
  const buckets = [...BOUNDS, Number.POSITIVE_INFINITY].map((bound) => ({
    labels: { le: bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound) },
    value: sumOf(
      succeeded.filter(({ below }) => below <= bound * 1000),
      'count',
    ),
    suffix: '_bucket' as const,
  }))
  return {
    name: 'payroll_settlement_seconds',
    help: 'Time from recording a transfer to settling it as succeeded.',
    type: 'histogram',
    samples: [
      ...buckets,
      { labels: {}, value: sumOf(succeeded, 'milliseconds') / 1000, suffix: '_sum' },
      { labels: {}, value: sumOf(succeeded, 'count'), suffix: '_count' },
    ],
  }
}

async function quotaFamilies(db: Database, now: Date): Promise<Family[]> {
  const [today] = await db
    .select({ held: quotas.held, used: quotas.used, count: quotas.count })
    .from(quotas)
    .where(and(eq(quotas.account, EVERYBODY), eq(quotas.day, quotaDay(now))))
  const floats = await db.select().from(sponsorFloats)
  return [
    gauge(
      'payroll_sponsor_day_stroops',
      'Use of the daily budget today (UTC): charged, and reserved for open transfers.',
      { state: (['used', 'held'] as const).map((state) => [state, Number(today?.[state] ?? 0n)]) },
    ),
    gauge('payroll_sponsor_day_transfers', 'Transfers that count towards the quotas today (UTC).', today?.count ?? 0),
    gauge('payroll_sponsor_held_stroops', 'Bids of open transfers, which the network may still charge.', {
      sponsor: floats.map(({ sponsor, held }) => [sponsor, Number(held)]),
    }),
  ]
}

async function jobFamilies(db: Database): Promise<Family[]> {
  const jobs = await db
    .select({ state: relayJobs.status, value: count() })
    .from(relayJobs)
    .where(inArray(relayJobs.status, ['running', 'failed']))
    .groupBy(relayJobs.status)
  const lines = await db
    .select({ state: LINE_STATE, value: count() })
    .from(relayLines)
    .where(or(IS_OPEN_LINE, inArray(relayLines.outcome, ['failed', 'unknown'])))
    .groupBy(LINE_STATE)
  const byState = (rows: readonly { state: string; value: number }[]) => ({
    state: rows.map(({ state, value }) => [state, value] as const),
  })
  return [
    gauge('payroll_jobs', 'Relay jobs that are running or have failed, by state.', byState(jobs)),
    gauge('payroll_job_lines', 'Lines of relay jobs that are neither paid nor canceled, by state.', byState(lines)),
  ]
}
