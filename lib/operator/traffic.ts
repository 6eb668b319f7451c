import { gte, sql } from 'drizzle-orm'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'

const HOUR_MS = 3_600_000
const HOURS = 24

/** What became of the transfers that were accepted in one hour. */
export interface TrafficHour {
  /** its beginning */
  at: Date
  succeeded: number
  /** failed on the ledger, or can no longer get there */
  failed: number
  open: number
  /** seconds from acceptance to settlement, as half of them took at most; undefined where none was settled */
  medianSeconds: number | undefined
}

/** A day of the sponsor's work. */
export interface Traffic {
  /** 24 of them, oldest first; the last one is still going on */
  hours: TrafficHour[]
  /** over all that succeeded; undefined without any */
  medianSeconds: number | undefined
  /** as 95 of 100 took at most */
  slowSeconds: number | undefined
}

/** The transfers of the last 24 hours, in one query. */
export async function readTraffic(db: Database, now: Date): Promise<Traffic> {
  const current = Math.floor(now.getTime() / HOUR_MS)
  const first = new Date((current - HOURS + 1) * HOUR_MS)
  const { status, createdAt, settledAt } = sponsoredTransfers
  const hour = sql`floor(extract(epoch from ${createdAt}) / 3600)`
  const took = sql`extract(epoch from ${settledAt} - ${createdAt})`
  const succeeded = sql`${status} = 'success'`
  const percentile = (part: number) =>
    sql<
      number | null
    >`(percentile_cont(${sql.raw(String(part))}) within group (order by ${took}) filter (where ${succeeded}))::float8`
  const rows = await db
    .select({
      // null is the line of all hours together
      hour: sql<number | null>`${hour}::int`,
      succeeded: sql<number>`(count(*) filter (where ${succeeded}))::int`,
      failed: sql<number>`(count(*) filter (where ${status} in ('failed', 'dead')))::int`,
      open: sql<number>`(count(*) filter (where ${status} in ('held', 'sent')))::int`,
      medianSeconds: percentile(0.5),
      slowSeconds: percentile(0.95),
    })
    .from(sponsoredTransfers)
    .where(gte(createdAt, first))
    .groupBy(sql`grouping sets ((${hour}), ())`)
  const byHour = new Map(rows.map((row) => [row.hour, row]))
  const all = byHour.get(null)
  return {
    hours: Array.from({ length: HOURS }, (_, position) => {
      const of = current - HOURS + 1 + position
      const row = byHour.get(of)
      return {
        at: new Date(of * HOUR_MS),
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
