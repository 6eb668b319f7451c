import { and, gte, inArray, sql } from 'drizzle-orm'
import type { Database } from '#lib/db/connection.ts'
import { notOfFaucet, TRANSFER_VIEWS, transferRows } from './transfer-rows.ts'

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

/** Reads the transfers of a range in one query, without the deposits of `faucet`. */
export async function readTraffic(
  db: Database,
  now: Date,
  range: Range = '24h',
  faucet: string | undefined = undefined,
): Promise<Traffic> {
  const { parts, seconds } = RANGES[range]
  const current = Math.floor(now.getTime() / 1000 / seconds)
  const first = current - parts + 1
  const { status, createdAt, settledAt } = transferRows
  const part = sql`floor(extract(epoch from ${createdAt}) / ${sql.raw(String(seconds))})`
  const took = sql`extract(epoch from ${settledAt} - ${createdAt})`
  const isOne = (view: keyof typeof TRANSFER_VIEWS) => inArray(status, [...TRANSFER_VIEWS[view]])
  const counted = (view: keyof typeof TRANSFER_VIEWS) => sql<number>`(count(*) filter (where ${isOne(view)}))::int`
  const percentile = (share: number) =>
    sql<
      number | null
    >`(percentile_cont(${sql.raw(String(share))}) within group (order by ${took}) filter (where ${isOne('succeeded')}))::float8`
  const rows = await db
    .select({
      // null: the row for the whole range
      part: sql<number | null>`${part}::int`,
      succeeded: counted('succeeded'),
      failed: counted('failed'),
      open: counted('open'),
      medianSeconds: percentile(0.5),
      slowSeconds: percentile(0.95),
    })
    .from(transferRows)
    .where(and(gte(createdAt, new Date(first * seconds * 1000)), notOfFaucet(faucet)))
    .groupBy(sql`grouping sets ((${part}), ())`)
  const byPart = new Map(rows.map((row) => [row.part, row]))
  const all = byPart.get(null)
  return {
    range,
    parts: Array.from({ length: parts }, (_, position) => {
      const row = byPart.get(first + position)
      return {
        at: new Date((first + position) * seconds * 1000),
        succeeded: row?.succeeded ?? 0,
        failed: row?.failed ?? 0,
        open: row?.open ?? 0,
        medianSeconds: row?.medianSeconds ?? undefined,
      }
    }),
    medianSeconds: all?.medianSeconds ?? undefined,
    slowSeconds: all?.slowSeconds ?? undefined,
  }
}
