import { type AnyColumn, type SQL, sql } from 'drizzle-orm'

/**
 * The order of a list, newest first unless it is `ascending`: by `lead`, if it has one, and then by `sequence`, which is
 * unique. It needs an index on the same columns.
 */
export interface Order {
  lead?: { column: AnyColumn | SQL; type: 'timestamptz' | 'bigint' }
  sequence: AnyColumn | SQL
  ascending?: boolean
}

/** The place of a row in its order: its lead, in milliseconds if it is a time and 0 if there is none, and its sequence. */
export type Place = readonly [lead: number, sequence: number]

/** The order of records by time, for an index on (…, createdAt desc, sequence desc). */
export const byTime = (columns: { createdAt: AnyColumn; sequence: AnyColumn | SQL }): Order => ({
  lead: { column: columns.createdAt, type: 'timestamptz' },
  sequence: columns.sequence,
})

/** The end of the year 9999, in milliseconds: PostgreSQL cannot read the ISO form of a later year. */
const LAST_MOMENT = Date.UTC(10_000, 0) - 1

/** A place as an opaque parameter of a query. */
export const writeCursor = ([lead, sequence]: Place): string => Buffer.from(`${lead}-${sequence}`).toString('base64url')

/** The place that `writeCursor` wrote; undefined for any other text. */
export function readCursor(cursor: string): Place | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('latin1')
  const [, lead = '', sequence = ''] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? []
  return lead === '' || Number(lead) > LAST_MOMENT ? undefined : [Number(lead), Number(sequence)]
}

/** The condition for the rows after `place`, or for those before it. */
export function besidePlace(order: Order, place: Place | undefined, side: 'after' | 'before' = 'after') {
  if (!place) return undefined
  const [lead, sequence] = place
  const isAbove = (order.ascending ?? false) === (side === 'after')
  const comparison = isAbove ? sql`>` : sql`<`
  if (!order.lead) return sql`${order.sequence} ${comparison} ${sequence}`
  const { column, type } = order.lead
  const value = type === 'bigint' ? sql`${lead}::bigint` : sql`${new Date(lead).toISOString()}::timestamptz`
  return sql`(${column}, ${order.sequence}) ${comparison} (${value}, ${sequence})`
}

/** The columns of an ORDER BY; reversed to read the rows before a place. */
export function orderedBy({ lead, sequence, ascending = false }: Order, side: 'after' | 'before' = 'after'): SQL[] {
  const direction = ascending === (side === 'after') ? sql`asc` : sql`desc`
  return [...(lead ? [lead.column] : []), sequence].map((column) => sql`${column} ${direction}`)
}

/**
 * Reads a long result in chunks of at most `size` rows. `read` gets the last row of the previous chunk and continues
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
