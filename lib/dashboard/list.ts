import { type SQL, sql } from 'drizzle-orm'
import { MAX_COUNTED } from '#lib/db/count.ts'
import { besidePlace, type Order, orderedBy, type Place, readCursor, readInParts, writeCursor } from '#lib/db/keyset.ts'

/** The requested page of a list: the rows after a cursor, those before one, or the first ones. */
export interface PageRequest {
  after?: string | undefined
  before?: string | undefined
}

/** The fields of a table's row that a query selects. */
export type Read<Row, Columns> = Pick<Row, keyof Row & keyof Columns>

/** One page of a list. */
export interface List<Row> {
  rows: Row[]
  /** cursors of the pages before and after this one, if there are rows */
  previous: string | undefined
  next: string | undefined
  /** the matching records by status, each at most MAX_COUNTED + 1; '' counts all */
  counts: ReadonlyMap<string, number>
  /** the matching records on all pages, at most MAX_COUNTED + 1 */
  total: number
}

export const PAGE_SIZE = 50

/** How many rows an export reads at a time: few enough to start a file at once, and to stop soon after its reader leaves. */
export const PART_SIZE = 200

/** What a query of a list adds to its filters. */
export interface Part {
  beside: SQL | undefined
  order: SQL[]
  limit: number
}

/** A list without its filters: its order, how a part of it is read, and the place of each of its rows. */
export interface Source<Row> {
  order: Order
  read: (part: Part) => Promise<Row[]>
  placeOf: (row: Row) => Place
}

/** Reads a page and whether there are rows on either side of it. A place with no rows before it is the start. */
export async function readPage<Row>(
  source: Source<Row>,
  { after, before }: PageRequest,
  size = PAGE_SIZE,
): Promise<Pick<List<Row>, 'rows' | 'previous' | 'next'>> {
  const [end, start] = [after ? readCursor(after) : undefined, before ? readCursor(before) : undefined]
  const isBackwards = start !== undefined && end === undefined
  const { order, read } = source
  const side = isBackwards ? 'before' : 'after'
  const found = await read({
    beside: besidePlace(order, end ?? start, side),
    order: orderedBy(order, side),
    limit: size + 1,
  })
  const hasMore = found.length > size
  if (isBackwards && !hasMore) return await readPage(source, {}, size)
  const rows = isBackwards ? found.slice(0, size).toReversed() : found.slice(0, size)
  const cursorOf = (row: Row | undefined) => row && writeCursor(source.placeOf(row))
  return {
    rows,
    previous: end || isBackwards ? (cursorOf(rows[0]) ?? after) : undefined,
    next: isBackwards || hasMore ? cursorOf(rows.at(-1)) : undefined,
  }
}

/** Reads all rows of a list in chunks of at most `size`, each starting after the last row of the previous one. */
export function readAll<Row>({ order, read, placeOf }: Source<Row>, size = PART_SIZE): AsyncGenerator<Row[]> {
  return readInParts(
    (last) =>
      read({
        beside: besidePlace(order, last === undefined ? undefined : placeOf(last)),
        order: orderedBy(order),
        limit: size,
      }),
    size,
  )
}

/** How many rows of a query meet a condition. */
export const countOf = (condition: SQL) => sql`count(*) filter (where ${condition})`.mapWith(Number)

/** The counts of a list with their sum under '', and the count of one status. */
export function totals(counts: ReadonlyMap<string, number>, status: string): Pick<List<unknown>, 'counts' | 'total'> {
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const bounded = new Map([['', Math.min(all, MAX_COUNTED + 1)], ...counts])
  return { counts: bounded, total: bounded.get(status) ?? 0 }
}

/** The conditions of a list for each value of its status, whose matches its tabs count. */
export const byStatus = <Status extends string>(
  statuses: readonly Status[],
  condition: (status: Status) => SQL | undefined,
): Record<Status, SQL | undefined> =>
  Object.fromEntries(statuses.map((status) => [status, condition(status)])) as Record<Status, SQL | undefined>
