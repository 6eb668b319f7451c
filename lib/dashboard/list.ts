import { eq, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn } from 'drizzle-orm/pg-core'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'

/** The filters of every list on the dashboard. An empty string filters nothing. */
export interface ListRequest {
  /** part of a name, an email, an address or a hash */
  q: string
  status: string
  /** id of an organisation */
  organisation: string
  /** from 1 */
  page: number
}

/** The fields of a table's row that a query selects. */
export type Read<Row, Columns> = Pick<Row, keyof Row & keyof Columns>

/** One page of a list. */
export interface List<Row> {
  rows: Row[]
  /** the matching records by status; '' counts all */
  counts: ReadonlyMap<string, number>
  /** the number of records on all pages */
  total: number
  page: number
  pages: number
}

export const PAGE_SIZE = 50

/** How many rows an export reads at a time. */
export const PART_SIZE = 1_000

/** The filters of a list without its page: what an export of the list is given. */
export type Filters<Request> = Omit<Request, 'page'>

/** Reads a page, or the last one if the page no longer exists. */
export async function readPage<Row>(
  counts: ReadonlyMap<string, number>,
  { status, page }: Pick<ListRequest, 'status' | 'page'>,
  read: (part: { limit: number; offset: number }) => Promise<Row[]>,
  size = PAGE_SIZE,
): Promise<List<Row>> {
  const total = counts.get(status) ?? 0
  const pages = Math.max(1, Math.ceil(total / size))
  const shown = Math.min(Math.max(1, page), pages)
  const rows = total === 0 ? [] : await read({ limit: size, offset: (shown - 1) * size })
  return { rows, counts, total, page: shown, pages }
}

/** Matches the rows after `last` in a list that is ordered by time and then by id, newest first. */
export function afterRow(columns: Record<'createdAt' | 'id', AnyPgColumn>, last: { createdAt: Date; id: string }): SQL {
  return sql`(${columns.createdAt}, ${columns.id}) < (${last.createdAt.toISOString()}::timestamptz, ${last.id}::uuid)`
}

/** Counts by status, with the sum under ''. */
export function countsOf(rows: readonly { value: string; count: number }[]): Map<string, number> {
  const all = rows.reduce((sum, { count }) => sum + count, 0)
  return new Map([['', all], ...rows.map(({ value, count }) => [value, count] as const)])
}

/** The condition for an organisation's records. Text that is not an id matches nothing. */
export function ofOrganisation(column: AnyPgColumn, organisation: string): SQL | undefined {
  if (organisation === '') return undefined
  return isId(organisation) ? eq(column, organisation) : sql`false`
}

export async function findOrganisationName(db: Database, id: string): Promise<string | undefined> {
  if (!isId(id)) return undefined
  const [row] = await db.select({ name: organisations.name }).from(organisations).where(eq(organisations.id, id))
  return row?.name
}
