import { type SQL, sql } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import type { Database } from './connection.ts'

/**
 * The entries are numbered as they are written, but a transaction may write its time seconds later, and the clocks of the
 * hosts differ. Within this time, the numbers say nothing about the order.
 */
const DISORDER = sql`interval '1 hour'`

/** A lower bound of the numbers of all entries since a moment. */
export const firstAround = (db: Database, moment: Date) => findFirstSince(db, moment, sql`- ${DISORDER}`)

/** A number above those of all entries before a moment. */
export const firstBeyond = (db: Database, moment: Date) => findFirstSince(db, moment, sql`+ ${DISORDER}`)

/** The number of the first entry since a moment, or the next number if there is none. */
async function findFirstSince(db: Database, moment: Date, more: SQL): Promise<number> {
  const at = sql`(${moment.toISOString()}::timestamptz ${more})`
  const isEarlier = sql`(select ${auditLog.at} from ${auditLog} where ${auditLog.sequence} >= (low + high) / 2
    order by ${auditLog.sequence} limit 1) < ${at}`
  const search = sql`(with recursive search(low, high) as (
    select coalesce(min(${auditLog.sequence}), 0), coalesce(max(${auditLog.sequence}), 0) + 1 from ${auditLog}
    union all
    select case when is_earlier then (low + high) / 2 + 1 else low end, case when is_earlier then high else (low + high) / 2 end
    from (select low, high, ${isEarlier} as is_earlier from search where low < high) as half
  ) select low as number from search where low = high) as found`
  const [found] = await db.select({ number: sql`number`.mapWith(Number) }).from(search)
  return found?.number ?? 0
}
