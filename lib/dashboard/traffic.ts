import { and, count, eq, gte, sql } from 'drizzle-orm'
import type { Database } from '#lib/db/connection.ts'
import { hourOf, isCounted } from './rollups.ts'
import { type Bucket, countSettlements, percentileOf } from './settlements.ts'
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

/** Reads the transfers of a range, without the faucet's deposits. */
export async function readTraffic(db: Database, now: Date, range: Range = '24h'): Promise<Traffic> {
  const { parts, seconds } = RANGES[range]
  const current = Math.floor(now.getTime() / 1000 / seconds)
  const starts = Array.from(
    { length: parts },
    (_, position) => new Date((current - parts + 1 + position) * seconds * 1000),
  )
  const [since = now] = starts
  const settled = await countSettlements(db, since)
  const keyLength = range === '24h' ? 13 : 10
  const part = sql<string>`left(${settled.hour}, ${sql.raw(String(keyLength))})`
  const recordedAt = sql`date_trunc('hour', ${transferRows.createdAt} at time zone 'UTC')`
  const [counts, open] = await Promise.all([
    db
      .select({
        hour: part.as('part'),
        status: settled.status,
        bucket: settled.bucket,
        count: sql`sum(${settled.count})`.mapWith(Number),
        milliseconds: sql`sum(${settled.milliseconds})`.mapWith(Number),
      })
      .from(settled)
      .groupBy(sql`part`, settled.status, settled.bucket),
    db
      .select({ hour: sql<string>`to_char(${recordedAt}, 'YYYY-MM-DD"T"HH24')`, count: count() })
      .from(transferRows)
      .where(and(eq(transferRows.status, 'open'), isCounted, gte(transferRows.createdAt, since)))
      .groupBy(recordedAt),
  ])
  const partOf = ({ hour }: { hour: string }) => hour.slice(0, keyLength)
  const [countsOf, openOf] = [Map.groupBy(counts, partOf), Map.groupBy(open, partOf)]
  return {
    range,
    parts: starts.map((at) => {
      const key = hourOf(at).slice(0, keyLength)
      const own = countsOf.get(key) ?? []
      return {
        at,
        succeeded: sumOf(own, 'succeeded'),
        failed: sumOf(own, 'failed'),
        open: (openOf.get(key) ?? []).reduce((sum, row) => sum + row.count, 0),
        medianSeconds: percentileOf(succeededOf(own), 0.5),
      }
    }),
    medianSeconds: percentileOf(succeededOf(counts), 0.5),
    slowSeconds: percentileOf(succeededOf(counts), 0.95),
  }
}

type Counted = Bucket & { status: string }

const succeededOf = (rows: readonly Counted[]) => rows.filter(({ status }) => status === 'succeeded')

function sumOf(rows: readonly Counted[], view: keyof typeof TRANSFER_VIEWS): number {
  const statuses: readonly string[] = TRANSFER_VIEWS[view]
  return rows.reduce((sum, row) => sum + (statuses.includes(row.status) ? row.count : 0), 0)
}
