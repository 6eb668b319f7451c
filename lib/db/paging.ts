import { type AnyColumn, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'

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
  /** the number of records in the whole list, if requested */
  total?: number
}

/** The query parameters of every list. `cursor` comes from a Link header and is opaque to clients. */
export const pageQuery = z.object({
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, `limit must be 1 to ${LARGEST_PAGE}`)
    .transform(Number)
    .refine((limit) => limit <= LARGEST_PAGE, `limit must be 1 to ${LARGEST_PAGE}`)
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
    .max(100, 'cursor must come from the Link header of an earlier page')
    .transform((text, context) => position(text) ?? refuseCursor(context))
    .optional()
    .meta({ description: 'where to continue: from the Link header of the previous page', 'x-extension': true }),
})

function refuseCursor(context: z.RefinementCtx): never {
  context.addIssue('cursor must come from the Link header of an earlier page')
  return z.NEVER
}

export function pageRequest({ limit, cursor }: z.output<typeof pageQuery>): PageRequest {
  return { limit: limit ?? WHOLE_LIST, after: cursor, counts: limit !== undefined }
}

/** The end of the year 9999, in milliseconds: PostgreSQL cannot read the ISO form of a later year. */
const LAST_MOMENT = Date.UTC(10_000, 0) - 1

function position(cursor: string): Position | undefined {
  const [, moment = '', sequence = ''] = /^(\d{1,15})-(\d{1,15})$/.exec(decode(cursor)) ?? []
  if (moment === '' || Number(moment) > LAST_MOMENT) return undefined
  return { createdAt: new Date(Number(moment)), sequence: Number(sequence) }
}

const decode = (cursor: string) => Buffer.from(cursor, 'base64url').toString('latin1')

/** A position as the `cursor` of a query, for a link to the next page. */
export function cursorOf({ createdAt, sequence }: Position): string {
  return Buffer.from(`${createdAt.getTime()}-${sequence}`).toString('base64url')
}

interface Columns {
  createdAt: AnyColumn
  sequence: AnyColumn | SQL
}

/** The condition for records after `page.after`, for an index on (…, createdAt desc, sequence desc). */
export function afterPosition(columns: Columns, page: { after?: Position | undefined }): SQL | undefined {
  if (!page.after) return undefined
  const moment = sql`${page.after.createdAt.toISOString()}::timestamptz`
  return sql`(${columns.createdAt}, ${columns.sequence}) < (${moment}, ${page.after.sequence})`
}

export function newestFirst(columns: Columns): [SQL, SQL] {
  return [sql`${columns.createdAt} desc`, sql`${columns.sequence} desc`]
}

/** How many rows to read for `page`: one more than its limit, to see whether more follow. */
export const rowsToRead = (page: PageRequest): number => page.limit + 1

/** Makes a page of the rows that were read, `rowsToRead` at most. */
export function cutPage<Row extends Position>(rows: readonly Row[], page: PageRequest): Page<Row> {
  const items = rows.slice(0, page.limit)
  const last = items.at(-1)
  return { items, next: rows.length > page.limit && last ? last : undefined }
}

/**
 * Reads a long result in parts of at most `size` rows. `read` gets the last row of the previous part and continues
 * after it (keyset), so concurrent inserts cause no row to be skipped or repeated.
 */
export async function* readInParts<Row>(
  read: (last: Row | undefined) => Promise<Row[]>,
  size: number,
): AsyncGenerator<Row[]> {
  let last: Row | undefined
  for (;;) {
    const rows = await read(last)
    if (rows.length > 0) yield rows
    last = rows.at(-1)
    if (rows.length < size) return
  }
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
