import { and, count, eq, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { batchItems, batchJobs } from '#drizzle/schema/relay.ts'
import { quotas, sponsorFloats } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Family, Sample } from '#lib/observability/metrics.ts'
import { EVERYBODY, quotaDay } from '#lib/transfers/quota.ts'
import { notOfFaucet, transferRows } from './transfer-rows.ts'

const SETTLEMENT_BOUNDS = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 330]

/**
 * Reads the metrics that come from the database: they are the same on every instance and survive restarts.
 * @param faucet the faucet's account, whose deposits do not count as sponsored transfers
 */
export async function storedFamilies(db: Database, now: Date, faucet: string | undefined): Promise<Family[]> {
  return [
    ...(await transferFamilies(db, faucet)),
    await refusalFamily(db),
    ...(await quotaFamilies(db, now)),
    ...(await jobFamilies(db)),
  ]
}

async function transferFamilies(db: Database, faucet: string | undefined): Promise<Family[]> {
  const byStatus = await db
    .select({ status: transferRows.status, value: count() })
    .from(transferRows)
    .where(notOfFaucet(faucet))
    .groupBy(transferRows.status)
  const samples = byStatus.map(({ status, value }) => ({ labels: { status }, value }))
  const isOpen = ({ labels: { status } }: (typeof samples)[number]) => status === 'open'
  return [
    {
      name: 'payroll_transfers_total',
      help: 'Decided sponsored transfers, by outcome.',
      type: 'counter',
      samples: samples.filter((sample) => !isOpen(sample)),
    },
    {
      name: 'payroll_transfers_open',
      help: 'Undecided sponsored transfers, by status.',
      type: 'gauge',
      samples: samples.filter(isOpen),
    },
    await settlementFamily(db, faucet),
  ]
}

async function settlementFamily(db: Database, faucet: string | undefined): Promise<Family> {
  const { createdAt, settledAt, status } = transferRows
  const seconds = sql`extract(epoch from ${settledAt} - ${createdAt})`
  const bounds = sql.raw(`array[${SETTLEMENT_BOUNDS.join(', ')}]::numeric[]`)
  // width_bucket puts a value that equals a bound into the bucket above, which does not matter for times.
  const rows = await db
    .select({
      bucket: sql`width_bucket(${seconds}, ${bounds})`.mapWith(Number).as('bucket'),
      value: count(),
      sum: sql`sum(${seconds})`.mapWith(Number),
    })
    .from(transferRows)
    .where(and(eq(status, 'succeeded'), notOfFaucet(faucet)))
    .groupBy(sql`bucket`)
  const counts = new Array<number>(SETTLEMENT_BOUNDS.length + 1).fill(0)
  for (const { bucket, value } of rows) counts[bucket] = value
  const sum = rows.reduce((total, row) => total + row.sum, 0)
  return {
    name: 'payroll_settlement_seconds',
    help: 'Time from recording a transfer to settling it as succeeded.',
    type: 'histogram',
    samples: distributionSamples(counts, sum),
  }
}

/** The samples of a histogram, whose buckets are cumulative. */
function distributionSamples(counts: readonly number[], sum: number): Sample[] {
  let total = 0
  const buckets = [...SETTLEMENT_BOUNDS, '+Inf'].map((bound, index) => {
    total += counts[index] ?? 0
    return { labels: { le: String(bound) }, value: total, suffix: '_bucket' as const }
  })
  return [...buckets, { labels: {}, value: sum, suffix: '_sum' }, { labels: {}, value: total, suffix: '_count' }]
}

async function refusalFamily(db: Database): Promise<Family> {
  const rows = await db
    .select({ reason: sql<string>`${auditLog.detail} ->> 'reason'`.as('reason'), value: count() })
    .from(auditLog)
    .where(eq(auditLog.action, 'transfer.refused'))
    .groupBy(sql`reason`)
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
  const jobs = await db.select({ state: batchJobs.status, value: count() }).from(batchJobs).groupBy(batchJobs.status)
  const items = await db
    .select({ state: batchItems.status, value: count() })
    .from(batchItems)
    .groupBy(batchItems.status)
  return [
    {
      name: 'payroll_jobs',
      help: 'Relay jobs, by state.',
      type: 'gauge',
      samples: jobs.map(({ state, value }) => ({ labels: { state }, value })),
    },
    {
      name: 'payroll_job_items',
      help: 'Items of relay jobs, by state.',
      type: 'gauge',
      samples: items.map(({ state, value }) => ({ labels: { state }, value })),
    },
  ]
}
