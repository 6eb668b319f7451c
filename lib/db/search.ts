import { type AnyColumn, and, or, type SQL, sql } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'

/** A text as a literal in a pattern of LIKE. */
const literal = (text: string): string => text.replaceAll(/[\\%_]/g, '\\$&')

/**
 * The condition that one of `columns` contains `text`, case-insensitively and without wildcards; undefined for an empty
 * text.
 */
export function contains(text: string | undefined, ...columns: (AnyColumn | SQL)[]): SQL | undefined {
  if (!text) return undefined
  // PostgreSQL stores neither NUL nor unpaired surrogates.
  if (text.includes('\0') || !text.isWellFormed()) return sql`false`
  // Names are stored as NFC.
  const pattern = `%${literal(text.normalize('NFC'))}%`
  return or(...columns.map((column) => sql`${column}::text ilike ${pattern}`))
}

/** Folded texts of records, with an index for their beginning (text_pattern_ops) and one for their parts (gin_trgm_ops). */
export interface Searchable {
  table: PgTable
  /** the column with the id of the record that the text belongs to */
  id: AnyColumn
  folded: AnyColumn | SQL
  /** the condition of both indexes */
  condition: SQL | undefined
}

/** The condition that a folded text begins with `part`, in any case. */
export const beginsWith = (folded: AnyColumn | SQL, part: string): SQL =>
  sql`${folded} like lower(${literal(part)}) || '%'`

/** The order of the index for beginnings: a query that reads in it stops at its limit. */
export const inIndexOrder = (folded: AnyColumn | SQL): SQL => sql`${folded} using ~<~`

/** The index of parts has trigrams of letters and digits: PostgreSQL would read all of it for a part without any. */
const INDEXED_PART = /[\p{L}\p{N}]{3}/u

/**
 * A query for the ids of at most `limit` records whose text contains `part`, in any case: those whose text begins with it, and
 * then the others. A part without three letters or digits in a row finds only the beginnings.
 */
export function idsWith(part: string, { table, id, folded, condition }: Searchable, limit: number): SQL {
  const begins = beginsWith(folded, part)
  const first = sql`select ${id} as id from ${table} where ${and(begins, condition)}
    order by ${inIndexOrder(folded)} limit ${limit}`
  if (!INDEXED_PART.test(part)) return first
  const within = sql`${folded} like '%' || lower(${literal(part)}) || '%' and not ${begins}`
  // PostgreSQL plans a materialized query for all of its rows, and therefore uses the index. It would read the whole table
  // for the first few, in the hope of finding them early. The query still stops at the limit.
  const others = sql`with others as materialized (select ${id} as id from ${table} where ${and(within, condition)})
    select id from others limit ${limit}`
  return sql`select id from ((${first}) union all (${others})) as found limit ${limit}`
}
