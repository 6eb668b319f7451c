import { type AnyColumn, sql } from 'drizzle-orm'
import { bigint, type ExtraConfigColumn, timestamp } from 'drizzle-orm/pg-core'

/** Whole milliseconds, like a Date: a cursor made from a row must point at exactly that row. */
export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date', precision: 3 })

/** Breaks ties between records created at the same time, so that lists have a stable order. */
export const sequence = () => bigint('sequence', { mode: 'number' }).generatedAlwaysAsIdentity()

/** The end of an index for lists with the newest record first. */
export const newest = (table: Record<'createdAt' | 'sequence', ExtraConfigColumn>) =>
  [table.createdAt.desc().nullsFirst(), table.sequence.desc().nullsFirst()] as const

/** The condition that a column has one of these values. */
export const oneOf = (column: AnyColumn, values: readonly string[]) =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`
