import { getTableColumns, type SQL } from 'drizzle-orm'
import { relayLines } from '#drizzle/schema/relay.ts'
import { LINE_STATE, type LineState } from '#lib/dashboard/line-state.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Line } from '#lib/transfers/line.ts'

/** A line's row, and what it is doing as the dashboard shows it. */
export type LineWithState = Line & { state: LineState }

/** The lines of jobs and runs that match a condition, in order. */
export function readLines(db: Database, condition?: SQL): Promise<LineWithState[]> {
  return db
    .select({ ...getTableColumns(relayLines), state: LINE_STATE })
    .from(relayLines)
    .where(condition)
    .orderBy(relayLines.job, relayLines.position)
}
