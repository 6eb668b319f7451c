import { and, count, eq, gt, inArray, or, sql } from 'drizzle-orm'
import { unionAll } from 'drizzle-orm/pg-core'
import { auditLog } from '#drizzle/schema/audit.ts'
import { relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { refusalCounts, rollups } from '#drizzle/schema/rollups.ts'
import { quotas, sponsorFloats } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Family } from '#lib/observability/metrics.ts'
import { IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { EVERYBODY, quotaDay } from '#lib/transfers/quota.ts'
import { LINE_STATE } from './line-state.ts'
import { isCounted } from './rollups.ts'
import { type Bucket, countBelow, countSettlements } from './settlements.ts'
import { transferRows } from './transfer-rows.ts'

const SETTLEMENT_BOUNDS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 330] as const

/** Reads the metrics that come from the database: they are the same on every instance and survive restarts. */
export async function storedFamilies(db: Database, now: Date): Promise<Family[]> {
  return [
    ...(await transferFamilies(db)),
    await refusalFamily(db),
    ...(await quotaFamilies(db, now)),
    ...(await jobFamilies(db)),
  ]
}

async function transferFamilies(db: Database): Promise<Family[]> {
  const settled = await countSettlements(db, undefined)
  const decided = await db
    .select({
      status: settled.status,
      bucket: settled.bucket,
      count: sql`sum(${settled.count})`.mapWith(Number),
      milliseconds: sql`sum(${settled.milliseconds})`.mapWith(Number),
    })
    .from(settled)
    .groupBy(settled.status, settled.bucket)
  const [open] = await db
    .select({ count: count() })
    .from(transferRows)
    .where(and(eq(transferRows.status, 'open'), isCounted))
  return [
    {
      name: 'payroll_transfers_total',
      help: 'Decided sponsored transfers, by outcome.',
      type: 'counter',
      samples: [...Map.groupBy(decided, ({ status }) => status)].map(([status, rows]) => ({
        labels: { status },
        value: sumOf(rows, 'count'),
      })),
    },
    {
      name: 'payroll_transfers_open',
      help: 'Undecided sponsored transfers.',
      type: 'gauge',
      samples: [{ labels: { status: 'open' }, value: open?.count ?? 0 }],
    },
    settlementFamily(decided.filter(({ status }) => status === 'succeeded')),
  ]
}

const sumOf = (rows: readonly Bucket[], of: 'count' | 'milliseconds') => rows.reduce((sum, row) => sum + row[of], 0)

/** The buckets of a histogram are cumulative. */
function settlementFamily(succeeded: readonly Bucket[]): Family {
  const all = sumOf(succeeded, 'count')
  const below = countBelow(succeeded, SETTLEMENT_BOUNDS)
  const buckets = [...SETTLEMENT_BOUNDS, '+Inf'].map((bound, index) => ({
    labels: { le: String(bound) },
    value: below[index] ?? all,
    suffix: '_bucket' as const,
  }))
  return {
    name: 'payroll_settlement_seconds',
    help: 'Time from recording a transfer to settling it as succeeded.',
    type: 'histogram',
    samples: [
      ...buckets,
      { labels: {}, value: sumOf(succeeded, 'milliseconds') / 1000, suffix: '_sum' },
      { labels: {}, value: all, suffix: '_count' },
    ],
  }
}

/** The counts, and the entries that the roll-up has not reached. */
async function refusalFamily(db: Database): Promise<Family> {
  const isOfRefusals = eq(rollups.name, 'refusals')
  const [row] = await db.select({ after: rollups.after }).from(rollups).where(isOfRefusals)
  const after = sql`coalesce((select ${rollups.after} from ${rollups} where ${isOfRefusals}), 0)`
  const rolledUp = db.select({ reason: refusalCounts.reason, count: refusalCounts.count }).from(refusalCounts)
  const fresh = db
    .select({ reason: sql<string>`${auditLog.detail} ->> 'reason'`.as('reason'), count: count() })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.action, 'transfer.refused'),
        gt(auditLog.sequence, row?.after ?? 0),
        gt(auditLog.sequence, after),
      ),
    )
    .groupBy(sql`reason`)
  const all = unionAll(rolledUp, fresh).as('refused')
  const rows = await db
    .select({ reason: all.reason, value: sql`sum(${all.count})`.mapWith(Number) })
    .from(all)
    .groupBy(all.reason)
  return {
    name: 'payroll_refusals_total',
    help: 'Transfers that the sponsor refused, by reason.',
    type: 'counter',
    samples: rows.map(({ reason, value }) => ({ labels: { reason }, value })),
  }
}

async function quotaFamilies(db: Database, now: Date): Promise<Family[]> {
  const [today] = await db
    .select({ held: quotas.held, used: quotas.used, count: quotas.count })
    .from(quotas)
    .where(sql`${quotas.account} = ${EVERYBODY} and ${quotas.day} = ${quotaDay(now)}`)
  const floats = await db.select({ sponsor: sponsorFloats.sponsor, held: sponsorFloats.held }).from(sponsorFloats)
  return [
    {
      name: 'payroll_sponsor_day_stroops',
      help: 'Use of the daily budget today (UTC): charged, and reserved for open transfers.',
      type: 'gauge',
      samples: [
        { labels: { state: 'used' }, value: Number(today?.used ?? 0n) },
        { labels: { state: 'held' }, value: Number(today?.held ?? 0n) },
      ],
    },
    {
      name: 'payroll_sponsor_day_transfers',
      help: 'Transfers that count towards the quotas today (UTC).',
      type: 'gauge',
      samples: [{ labels: {}, value: today?.count ?? 0 }],
    },
    {
      name: 'payroll_sponsor_held_stroops',
      help: 'Bids of open transfers, which the network may still charge.',
      type: 'gauge',
      samples: floats.map(({ sponsor, held }) => ({ labels: { sponsor }, value: Number(held) })),
    },
  ]
}

async function jobFamilies(db: Database): Promise<Family[]> {
  const jobs = await db
    .select({ state: relayJobs.status, value: count() })
    .from(relayJobs)
    .where(inArray(relayJobs.status, ['running', 'failed']))
    .groupBy(relayJobs.status)
  const items = await db
    .select({ state: LINE_STATE, value: count() })
    .from(relayLines)
    .where(or(IS_OPEN_LINE, inArray(relayLines.outcome, ['failed', 'unknown'])))
    .groupBy(LINE_STATE)
  return [
    {
      name: 'payroll_jobs',
      help: 'Relay jobs that are running or have failed, by state.',
      type: 'gauge',
      samples: jobs.map(({ state, value }) => ({ labels: { state }, value })),
    },
    {
      name: 'payroll_job_lines',
      help: 'Lines of relay jobs that are neither paid nor canceled, by state.',
      type: 'gauge',
      samples: items.map(({ state, value }) => ({ labels: { state }, value })),
    },
  ]
}
