import { and, count, eq, gte, ne, sql } from 'drizzle-orm'
import { settlementCounts } from '#drizzle/schema/counts.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { EVER, hourOf, isCounted } from '#lib/transfers/counts.ts'
import { TRANSFER_VIEWS } from './transfer-rows.ts'

/** The ranges of the charts, each in parts of equal length. Days start at midnight UTC. */
export const RANGES = {
  '24h': { parts: 24, seconds: 3_600, words: 'the last 24 hours' },
  '30d': { parts: 30, seconds: 86_400, words: 'the last 30 days' },
} as const
export type Range = keyof typeof RANGES

export type Traffic = Awaited<ReturnType<typeof readTraffic>>
export type TrafficPart = Traffic['parts'][number]

/** When the parts of a range begin, oldest first. */
export function startsOf(range: Range, now: Date): [Date, ...Date[]] {
  const { parts, seconds } = RANGES[range]
  const current = Math.floor(now.getTime() / 1000 / seconds)
  const start = (back: number) => new Date((current - back) * seconds * 1000)
  return [start(parts - 1), ...Array.from({ length: parts - 1 }, (_, position) => start(parts - 2 - position))]
}

/** Reads the transfers of a range, without the faucet's deposits. */
export async function readTraffic(db: Database, now: Date, range: Range = '24h') {
  const starts = startsOf(range, now)
  const [since] = starts
  const keyLength = range === '24h' ? 13 : 10
  const { hour, status, below } = settlementCounts
  const part = sql<string>`left(${hour}, ${sql.raw(String(keyLength))})`
  const recordedAt = sql`date_trunc('hour', ${transfers.createdAt} at time zone 'UTC')`
  const [settled, open] = await Promise.all([
    db
      .select({
        part: part.as('part'),
        status,
        below,
        count: sql`sum(${settlementCounts.count})`.mapWith(Number),
        milliseconds: sql`sum(${settlementCounts.milliseconds})`.mapWith(Number),
      })
      .from(settlementCounts)
      .where(and(gte(hour, hourOf(since)), ne(hour, EVER)))
      .groupBy(sql`part`, status, below)
      .orderBy(below),
    db
      .select({ hour: sql<string>`to_char(${recordedAt}, 'YYYY-MM-DD"T"HH24')`, count: count() })
      .from(transfers)
      .where(and(eq(transfers.status, 'open'), isCounted, gte(transfers.createdAt, since)))
      .groupBy(recordedAt),
  ])
  return {
    range,
    /** oldest first; the last one is in progress */
    parts: starts.map((at) => {
      const key = hourOf(at).slice(0, keyLength)
      const own = settled.filter((row) => row.part === key)
      return {
        at,
        succeeded: sumOf(own, 'succeeded'),
        /** failed on the ledger, or expired */
        failed: sumOf(own, 'failed'),
        open: open.reduce((sum, row) => sum + (row.hour.startsWith(key) ? row.count : 0), 0),
        /** from recording to settlement of succeeded transfers; undefined without any */
        medianSeconds: percentileOf(own, 0.5),
      }
    }),
    medianSeconds: percentileOf(settled, 0.5),
    /** the 95th percentile of the same times */
    slowSeconds: percentileOf(settled, 0.95),
  }
}

/** The transfers with one status whose times are in one bucket. */
type SettlementCount = Pick<typeof settlementCounts.$inferSelect, 'status' | 'below' | 'count' | 'milliseconds'>

function sumOf(rows: readonly SettlementCount[], view: keyof typeof TRANSFER_VIEWS): number {
  const statuses: readonly string[] = TRANSFER_VIEWS[view]
  return rows.reduce((sum, row) => sum + (statuses.includes(row.status) ? row.count : 0), 0)
}

/**
 * A percentile of the times of succeeded transfers, in seconds: the mean of the bucket that contains it. Undefined without
 * any.
 * @param rows in the order of their buckets
 */
function percentileOf(rows: readonly SettlementCount[], share: number): number | undefined {
  const succeeded = rows.filter(({ status }) => status === 'succeeded')
  let left = Math.max(1, Math.ceil(sumOf(succeeded, 'succeeded') * share))
  for (const bucket of Map.groupBy(succeeded, ({ below }) => below).values()) {
    const count = sumOf(bucket, 'succeeded')
    left -= count
    if (left <= 0) return bucket.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000 / count
  }
  return undefined
}
