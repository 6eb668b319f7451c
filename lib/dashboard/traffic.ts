import { and, count, eq, gte, ne, sql } from 'drizzle-orm'
import { settlementCounts } from '#drizzle/schema/counts.ts'
import type { Database } from '#lib/db/connection.ts'
import { EVER, hourOf, isCounted } from '#lib/transfers/counts.ts'
import { TRANSFER_VIEWS, transferRows } from './transfer-rows.ts'

/** The ranges of the charts, each in parts of equal length. Days start at midnight UTC. */
export const RANGES = {
  '24h': { parts: 24, seconds: 3_600, words: 'the last 24 hours' },
  '30d': { parts: 30, seconds: 86_400, words: 'the last 30 days' },
} as const
export type Range = keyof typeof RANGES

/** The transfers recorded in one part of a range (an hour or a day), by outcome. */
export interface TrafficPart {
  /** the start of the part */
  at: Date
  succeeded: number
  /** failed on the ledger, or expired */
  failed: number
  open: number
  /** median time from recording to settlement of succeeded transfers; undefined without any */
  medianSeconds: number | undefined
}

export interface Traffic {
  range: Range
  /** oldest first; the last one is in progress */
  parts: TrafficPart[]
  /** over the whole range */
  medianSeconds: number | undefined
  /** the 95th percentile of the same times */
  slowSeconds: number | undefined
}

/** When the parts of a range begin, oldest first. */
export function startsOf(range: Range, now: Date): [Date, ...Date[]] {
  const { parts, seconds } = RANGES[range]
  const current = Math.floor(now.getTime() / 1000 / seconds)
  const start = (back: number) => new Date((current - back) * seconds * 1000)
  return [start(parts - 1), ...Array.from({ length: parts - 1 }, (_, position) => start(parts - 2 - position))]
}

/** Reads the transfers of a range, without the faucet's deposits. */
export async function readTraffic(db: Database, now: Date, range: Range = '24h'): Promise<Traffic> {
  const starts = startsOf(range, now)
  const [since] = starts
  const keyLength = range === '24h' ? 13 : 10
  const { hour, status, below } = settlementCounts
  const part = sql<string>`left(${hour}, ${sql.raw(String(keyLength))})`
  const recordedAt = sql`date_trunc('hour', ${transferRows.createdAt} at time zone 'UTC')`
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
      .from(transferRows)
      .where(and(eq(transferRows.status, 'open'), isCounted, gte(transferRows.createdAt, since)))
      .groupBy(recordedAt),
  ])
  return {
    range,
    parts: starts.map((at) => {
      const key = hourOf(at).slice(0, keyLength)
      const own = settled.filter((row) => row.part === key)
      return {
        at,
        succeeded: sumOf(own, 'succeeded'),
        failed: sumOf(own, 'failed'),
        open: open.reduce((sum, row) => sum + (row.hour.startsWith(key) ? row.count : 0), 0),
        medianSeconds: percentileOf(own, 0.5),
      }
    }),
    medianSeconds: percentileOf(settled, 0.5),
    slowSeconds: percentileOf(settled, 0.95),
  }
}

/** The transfers with one status whose times are in one bucket. */
type Counted = Pick<typeof settlementCounts.$inferSelect, 'status' | 'below' | 'count' | 'milliseconds'>

function sumOf(rows: readonly Counted[], view: keyof typeof TRANSFER_VIEWS): number {
  const statuses: readonly string[] = TRANSFER_VIEWS[view]
  return rows.reduce((sum, row) => sum + (statuses.includes(row.status) ? row.count : 0), 0)
}

/**
 * A percentile of the times of succeeded transfers, in seconds: the mean of the bucket that contains it. Undefined without
 * any.
 * @param rows in the order of their buckets
 */
function percentileOf(rows: readonly Counted[], share: number): number | undefined {
  const succeeded = rows.filter(({ status }) => status === 'succeeded')
  let left = Math.max(1, Math.ceil(sumOf(succeeded, 'succeeded') * share))
  for (const bucket of Map.groupBy(succeeded, ({ below }) => below).values()) {
    const count = sumOf(bucket, 'succeeded')
    left -= count
    if (left <= 0) return bucket.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000 / count
  }
  return undefined
}
