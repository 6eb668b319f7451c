import { type AnyColumn, sql } from 'drizzle-orm'
import { timestamp } from 'drizzle-orm/pg-core'

/** Whole milliseconds, as a Date has: a cursor made from what was read must point at the very row. */
export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date', precision: 3 })

/** The condition that a column holds one of these. */
export const oneOf = (column: AnyColumn, values: readonly string[]) =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`
