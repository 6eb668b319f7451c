import { and, gte, lt, type SQL } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import { firstAround, firstBeyond } from '#lib/db/audit-sequence.ts'
import type { Database } from '#lib/db/connection.ts'
import { betweenDays, endOf, startOf } from './filters.ts'

/**
 * The condition for the entries of the log from the start of the day `from` to the end of the day `to`. No index has
 * their time: a binary search on the key finds the numbers around each end, which every index of the log ends with.
 */
export async function writtenBetween(db: Database, days: { from: string; to: string }): Promise<SQL | undefined> {
  const [start, end] = [startOf(days.from), endOf(days.to)]
  const first = start && (await firstAround(db, start))
  const last = end && (await firstBeyond(db, end))
  return and(
    first === undefined ? undefined : gte(auditLog.sequence, first),
    last === undefined ? undefined : lt(auditLog.sequence, last),
    betweenDays(auditLog.at, days),
  )
}
