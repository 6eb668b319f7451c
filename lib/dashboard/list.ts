import { eq, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn } from 'drizzle-orm/pg-core'
import { organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'

/** The filters that every list of the dashboard has. An empty string filters nothing. */
export interface ListRequest {
  /** part of a name, an email, an address or a hash */
  q: string
  status: string
  /** id of an organisation */
  organisation: string
  /** from 1 */
  page: number
}

/** The fields of a table's row that are among the columns read. */
export type Read<Row, Columns> = Pick<Row, keyof Row & keyof Columns>

/** One page of a list. */
export interface List<Row> {
  rows: Row[]
  /** how many records each status has, under the same search and filters; '' counts them all */
  counts: ReadonlyMap<string, number>
  /** how many records the list has, on all its pages */
  total: number
  page: number
  pages: number
}

/** How many records a page lists. */
export const PAGE_SIZE = 50

/** A page beyond the end shows the last one: records may have gone since the link was made. */
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

/** Counts by status, with the sum of all under ''. */
export function countsOf(rows: readonly { value: string; count: number }[]): Map<string, number> {
  const all = rows.reduce((sum, { count }) => sum + count, 0)
  return new Map([['', all], ...rows.map(({ value, count }) => [value, count] as const)])
}

/** The condition that `column` holds this organisation; an id of another shape is that of no organisation. */
export function ofOrganisation(column: AnyPgColumn, organisation: string): SQL | undefined {
  if (organisation === '') return undefined
  return isId(organisation) ? eq(column, organisation) : sql`false`
}

export async function findOrganisationName(db: Database, id: string): Promise<string | undefined> {
  if (!isId(id)) return undefined
  const [found] = await db.select({ name: organisations.name }).from(organisations).where(eq(organisations.id, id))
  return found?.name
}
