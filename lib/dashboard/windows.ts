import { lt, type SQL, sql } from 'drizzle-orm'
import { organisationCosts, organisationHours, settlementCounts } from '#drizzle/schema/counts.ts'
import type { Database } from '#lib/db/connection.ts'
import { hourOf } from '#lib/transfers/counts.ts'
import { type Range, startsOf } from './traffic.ts'

/** How long the counts of an hour are kept (days): the longest chart shows 30 days. */
const KEPT_DAYS = 32

/** How many hours of organisations leave a window in a round at most: settlements wait for the rows that it locks. */
const MAX_LEAVING = 1_000

/**
 * Deletes the counts of old hours, and subtracts the hours that have left the last 24 hours and the last 30 days from the
 * costs of their organisations. Resolves to how many counts it deleted or subtracted.
 */
export async function moveWindows(db: Database, now: Date): Promise<number> {
  const isOld = lt(settlementCounts.hour, hourOf(new Date(now.getTime() - KEPT_DAYS * 86_400_000)))
  const deleted = await db.delete(settlementCounts).where(isOld).returning({ hour: settlementCounts.hour })
  const leaving = (isIn: SQL, range: Range) => sql`${isIn} AND (hour, organisation) IN (
    SELECT hour, organisation FROM ${organisationHours} WHERE ${isIn} AND hour < ${hourOf(startsOf(range, now)[0])}
    ORDER BY hour, organisation LIMIT ${MAX_LEAVING})`
  const day = sql`UPDATE ${organisationHours} SET is_recent = false WHERE ${leaving(sql`is_recent`, '24h')}`
  const month = sql`DELETE FROM ${organisationHours} WHERE ${leaving(sql`NOT is_recent`, '30d')}`
  return deleted.length + (await subtract(db, 'day', day)) + (await subtract(db, 'month', month))
}

/**
 * Subtracts hours from the sums of a window, in the statement by which they leave it. A concurrent settlement that adds to
 * such an hour comes first, and is subtracted with it, or finds the hour outside the window.
 */
async function subtract(db: Database, window: 'day' | 'month', leave: SQL): Promise<number> {
  const less = ['transfers', 'failed', 'fees'].map((of) => sql.raw(`${window}_${of} = ${window}_${of} - sums.${of}`))
  const result = await db.execute(sql`WITH gone AS (${leave} RETURNING organisation, transfers, failed, fees),
    sums AS (SELECT organisation, sum(transfers) AS transfers, sum(failed) AS failed, sum(fees) AS fees FROM gone GROUP BY 1),
    moved AS (UPDATE ${organisationCosts} AS costs SET ${sql.join(less, sql`, `)} FROM sums
      WHERE costs.organisation = sums.organisation)
    SELECT count(*) AS count FROM gone`)
  const [row] = (result as unknown as { rows: { count: unknown }[] }).rows
  return Number(row?.count)
}
