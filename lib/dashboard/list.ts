import { and, eq, type SQL, sql } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo, MAX_COUNTED } from '#lib/db/count.ts'
import { besidePlace, type Order, orderedBy, type Place, readCursor, readInParts, writeCursor } from '#lib/db/keyset.ts'
import { type Position, placeOf } from '#lib/db/paging.ts'
import { type FilterChecks, type Filters, having } from './filters.ts'

/** The requested page of a list: the rows after a cursor, those before one, or the first ones. */
export interface PageRequest {
  after?: string | undefined
  before?: string | undefined
}

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
const PART_SIZE = 200

/** How many rows of a query to read, and in which order. */
interface Slice {
  order: SQL[]
  limit: number
}

/** The page that a list reads of the records that match its filters. */
export interface Part extends Slice {
  beside: SQL | undefined
}

/** A query of rows without its order. */
interface UnorderedQuery<Row> {
  orderBy: (...order: SQL[]) => { limit: (limit: number) => PromiseLike<Row[]> }
}

export const readPart = async <Row>(query: UnorderedQuery<Row>, { order, limit }: Slice): Promise<Row[]> =>
  await query.orderBy(...order).limit(limit)

/** The only row of a query; undefined without one. */
export const onlyRow = async <Row>(rows: PromiseLike<Row[]>): Promise<Row | undefined> => (await rows)[0]

/** The rows of a query. */
export type RowOf<Select extends (...args: never[]) => PromiseLike<unknown[]>> = Awaited<ReturnType<Select>>[number]

/** An expression that may be null, which its decoder does not say. */
export const orNull = <Value>(value: SQL<Value>): SQL<Value | null> => value

/** A list without its filters: its order, how a part of it is read, and the place of each of its rows. */
export interface Source<Row> {
  order: Order
  read: (part: Part) => Promise<Row[]>
  placeOf: (row: Row) => Place
}

/** What lists read with. */
export interface ListContext {
  db: Database
  now: Date
  /** the account of the faucet */
  faucet?: string | undefined
}

/** The records of a list that match its filters. */
interface Matches<Row> extends Source<Row> {
  /** Counts those of every tab; all of them under '', unless that is the sum. */
  count: () => Promise<Map<string, number>>
}

/** A list of the dashboard: its filters, and the records that match them. Its page and its file read both here. */
export interface RecordList<Checks extends FilterChecks, Row> {
  filters: Checks
  /** the filter that its tabs set, and the value of each tab except the first, which has all records */
  tabs?: { name: string; values: readonly string[] }
  match: (context: ListContext, filters: Filters<Checks>) => Matches<Row> | Promise<Matches<Row>>
}

interface TableList<Checks extends FilterChecks, Row, Selected> {
  filters: Checks
  table: PgTable
  newest: Order
  /** the column that the tabs and the filter `status` are about */
  status?: PgColumn
  /** the condition of its filters, except `status` */
  conditionOf: (db: Database, filters: Filters<Checks>) => SQL | undefined | Promise<SQL | undefined>
  /** its rows that match a condition, without their order */
  select: (db: Database, condition: SQL | undefined) => UnorderedQuery<Selected>
  /** the rows as they are listed, if they are not listed as they are */
  present?: (db: Database, rows: Selected[]) => Promise<Row[]>
}

/** A list of a table's records, newest first unless it is sorted by `oldest`. */
export function listTable<Checks extends FilterChecks, Selected extends Position, Row extends Position = Selected>(
  list: TableList<Checks, Row, Selected>,
): RecordList<Checks, Row> {
  const { filters: checks, table, newest, status, conditionOf, select } = list
  // Rows without a presentation are listed as they are.
  const { present = async (_, rows) => rows as unknown[] as Row[] } = list
  const values = status?.enumValues ?? []
  return {
    filters: checks,
    ...(status && { tabs: { name: 'status', values } }),
    match: async (context, filters) => {
      const { status: selected = '', sort }: Partial<Record<string, string>> = filters
      const all = await conditionOf(context.db, filters)
      const condition = and(all, status && having(status, selected))
      const tabs = status ? byStatus(values, (value) => and(all, eq(status, value))) : { '': all }
      return {
        order: { ...newest, ascending: sort === 'oldest' },
        read: async ({ beside, ...part }) =>
          await present(context.db, await readPart(select(context.db, and(condition, beside)), part)),
        placeOf: newest.lead ? placeOf : ({ sequence }) => [0, sequence],
        count: () => countUpTo(context.db, table, newest, tabs),
      }
    },
  }
}

/** Reads a page of a list, and counts its tabs. */
export async function readList<Checks extends FilterChecks, Row>(
  { tabs, match }: RecordList<Checks, Row>,
  context: ListContext,
  filters: Filters<Checks>,
  page: PageRequest,
): Promise<List<Row>> {
  const matches = await match(context, filters)
  const counts = withSum(await matches.count())
  const tab = tabs ? filters[tabs.name] : ''
  return { ...(await readPage(matches, page)), counts, total: counts.get(tab ?? '') ?? 0 }
}

/** Reads all records of a list, newest first, in chunks of at most `size`. */
export async function readWholeList<Checks extends FilterChecks, Row>(
  { match }: RecordList<Checks, Row>,
  context: ListContext,
  filters: Filters<Checks>,
  size?: number,
): Promise<AsyncGenerator<Row[]>> {
  return readAll(await match(context, { ...filters, sort: '' }), size)
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
function readAll<Row>({ order, read, placeOf }: Source<Row>, size = PART_SIZE): AsyncGenerator<Row[]> {
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

/** The counts of tabs with their sum under '', if that is missing. */
export function withSum(counts: ReadonlyMap<string, number>): Map<string, number> {
  const sum = [...counts.values()].reduce((all, count) => all + count, 0)
  return new Map([['', Math.min(sum, MAX_COUNTED + 1)], ...counts])
}

/** The conditions of a list for each value of its status, whose matches its tabs count. */
export const byStatus = <Status extends string>(
  statuses: readonly Status[],
  condition: (status: Status) => SQL | undefined,
): Record<Status, SQL | undefined> =>
  Object.fromEntries(statuses.map((status) => [status, condition(status)])) as Record<Status, SQL | undefined>
