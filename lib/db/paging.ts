import type { AnyColumn, SQL } from 'drizzle-orm'
import { z } from 'zod'
import { besidePlace, byTime, orderedBy, type Place, readCursor, writeCursor } from './keyset.ts'

/** How many records a list returns without a `limit`. */
const WHOLE_LIST = 1_000
const LARGEST_PAGE = 500

/** The place of a record in its list: newest first, by time and then by sequence. */
export interface Position {
  createdAt: Date
  sequence: number
}

/** The requested part of a list: at most `limit` records, starting after `after`. */
export interface PageRequest {
  limit: number
  after: Position | undefined
  /** whether to count the whole list, which is done when a part of it is requested */
  counts?: boolean
}

/** A part of a list, and where it ends if more follows. */
export interface Page<Item> {
  items: Item[]
  next: Position | undefined
  /** the number of records in the whole list, if requested; undefined if there are too many to count */
  total?: number
}

/**
 * The query parameters of every list. A list rejects unknown parameters: ignoring a misspelt filter would return too many records.
 * `cursor` comes from a Link header and is opaque to clients.
 */
export const pageQuery = z.strictObject({
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, `must be 1 to ${LARGEST_PAGE}`)
    .transform(Number)
    .refine((limit) => limit <= LARGEST_PAGE, `must be 1 to ${LARGEST_PAGE}`)
    .optional()
    .meta({
      description: 'the maximum number of records',
      type: 'integer',
      minimum: 1,
      maximum: LARGEST_PAGE,
      'x-extension': true,
    }),
  cursor: z
    .string()
    .max(100, 'must come from the Link header of an earlier page')
    .transform((text, context) => position(text) ?? refuseCursor(context))
    .optional()
    .meta({ description: 'where to continue: from the Link header of the previous page', 'x-extension': true }),
})

function refuseCursor(context: z.RefinementCtx): never {
  context.addIssue('must come from the Link header of an earlier page')
  return z.NEVER
}

export function pageRequest({ limit, cursor }: z.output<typeof pageQuery>): PageRequest {
  return { limit: limit ?? WHOLE_LIST, after: cursor, counts: limit !== undefined }
}

function position(cursor: string): Position | undefined {
  const place = readCursor(cursor)
  return place && { createdAt: new Date(place[0]), sequence: place[1] }
}

/** A position as the `cursor` of a query, for a link to the next page. */
export const cursorOf = (row: Position): string => writeCursor(placeOf(row))

/** The place of a record in a list by time. */
export const placeOf = ({ createdAt, sequence }: Position): Place => [createdAt.getTime(), sequence]

interface Columns {
  createdAt: AnyColumn
  sequence: AnyColumn | SQL
}

/** The condition for records after `page.after`, for an index on (…, createdAt desc, sequence desc). */
export const afterPosition = (columns: Columns, { after }: { after?: Position | undefined }): SQL | undefined =>
  besidePlace(byTime(columns), after && placeOf(after))

export const newestFirst = (columns: Columns): SQL[] => orderedBy(byTime(columns))

/** How many rows to read for `page`: one more than its limit, to see whether more follow. */
export const rowsToRead = (page: PageRequest): number => page.limit + 1

/** Makes a page of the rows that were read, `rowsToRead` at most. */
export function cutPage<Row extends Position>(rows: readonly Row[], page: PageRequest): Page<Row> {
  const items = rows.slice(0, page.limit)
  const last = items.at(-1)
  return { items, next: rows.length > page.limit && last ? last : undefined }
}

/**
 * The Link header to the page after `next` (RFC 8288): a relative reference that keeps the filters of the request and
 * works at every address of the service.
 */
export function linkTo(request: Request, next: Position): string {
  const query = new URL(request.url).searchParams
  query.set('cursor', cursorOf(next))
  return `<?${query}>; rel="next"`
}
