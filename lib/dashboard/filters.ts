import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn } from 'drizzle-orm/pg-core'
import { readCursor } from '#lib/db/keyset.ts'
import { isId } from '#lib/directory/ids.ts'

/** Whether a filter can have a value. */
type Check = (value: string) => boolean

/** The parameters that filter a list, each with the check of its values. */
export type FilterChecks = Record<string, Check>

/** The value of each filter of a list; empty if the filter is not set. */
export type Filters<Checks extends FilterChecks> = Record<keyof Checks, string>

export const isOneOf =
  (values: readonly string[]): Check =>
  (value) =>
    values.includes(value)

export const isRecordId: Check = isId

function isCursor(text: string): boolean {
  return readCursor(text) !== undefined
}

/** Whether a text is a day (YYYY-MM-DD) or a time in UTC (…T12:00:00.000Z), with a year of four digits. */
const isDay: Check = (text) => startOf(text) !== undefined

/** A G- or C-address, or the sub of a user of the identity provider. */
export const isAccount: Check = (text) => /^[\x21-\x7e]{1,200}$/.test(text)

/** A code of the network, or the number of a contract error. */
export const isReason: Check = (text) => /^[A-Za-z0-9_-]{1,64}$/.test(text)

/** A printable text of at most 200 characters. */
export const isErrorText: Check = (text) => /^[^\p{Cc}]{1,200}$/u.test(text)

/** The first and the last day of a list's records. */
export const DAYS = { from: isDay, to: isDay }

/** The filters of a list by time: newest first, unless it is sorted by `oldest`. */
export const BY_TIME = { ...DAYS, sort: isOneOf(['oldest']) }

/** The parameters of a list's pages. */
const PAGES: FilterChecks = { after: isCursor, before: isCursor }

/** A parameter of a query that a list doesn't have, or a value that its filter cannot have. */
export interface UnknownFilter {
  name: string
  value: string
}

/** Reads the filters of a list from a query. Unknown ones are reported, and do not affect the list. */
export function readFilters<Checks extends FilterChecks>(
  checks: Checks,
  query: Readonly<Record<string, string>>,
): { filters: Filters<Checks>; unknown: UnknownFilter[] } {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const all: FilterChecks = { ...PAGES, ...checks }
  const isKnown = ([name, value]: [string, string]) => Object.hasOwn(all, name) && all[name]?.(value) === true
  const known = Object.fromEntries(given.filter(isKnown))
  return {
    filters: Object.fromEntries(Object.keys(checks).map((name) => [name, known[name] ?? ''])) as Filters<Checks>,
    unknown: given.filter((entry) => !isKnown(entry)).map(([name, value]) => ({ name, value })),
  }
}

/** The condition that a column has the value of a filter. */
export const having = (column: AnyPgColumn, value: string): SQL | undefined =>
  value === '' ? undefined : eq(column, value)

/** Whether all other filters are empty. */
export const hasOnly = (filters: object, ...names: string[]): boolean =>
  Object.entries(filters).every(([name, value]) => names.includes(name) || value === '')

const DAY_MS = 86_400_000

/**
 * The condition that a column is in the given period, in UTC: from a time or the start of a day, to before a time or to
 * the end of a day.
 */
export function betweenDays(column: AnyPgColumn, { from, to }: { from: string; to: string }): SQL | undefined {
  const [start, end] = [startOf(from), endOf(to)]
  return and(start && gte(column, start), end && lt(column, end))
}

/** A time, or when a day begins; undefined for any other text. */
export function startOf(text: string): Date | undefined {
  const [, day, time] = /^((?!0000)\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:\d{2}\.\d{3}Z)?$/.exec(text) ?? []
  const at = day === undefined ? undefined : new Date(`${day}${time ?? 'T00:00:00.000Z'}`)
  // A Date carries 31 February over to March.
  const isReal = at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day ?? '')
  return isReal ? at : undefined
}

/** A time, or when the next day begins; undefined for any other text, and for the last day. */
export function endOf(text: string): Date | undefined {
  const start = startOf(text)
  if (!start || text.includes('T')) return start
  return text === '9999-12-31' ? undefined : new Date(start.getTime() + DAY_MS)
}

/**
 * The values of a column in a subquery, as an array: PostgreSQL looks each up in an index. It might evaluate `in` by
 * scanning the whole list instead, hoping for an early match.
 */
export const anyOf = (column: AnyPgColumn, values: SQL | { getSQL(): SQL }): SQL =>
  sql`${column} = any(array(${values}))`
