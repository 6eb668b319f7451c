import { type AnyColumn, or, type SQL, sql } from 'drizzle-orm'

/**
 * The condition that one of `columns` contains `text`, case-insensitively and without wildcards; undefined for an empty
 * text.
 */
export function contains(text: string | undefined, ...columns: (AnyColumn | SQL)[]): SQL | undefined {
  if (!text) return undefined
  // PostgreSQL stores neither NUL nor unpaired surrogates.
  if (text.includes('\0') || !text.isWellFormed()) return sql`false`
  // Names are stored as NFC.
  const pattern = `%${text.normalize('NFC').replaceAll(/[\\%_]/g, '\\$&')}%`
  return or(...columns.map((column) => sql`${column}::text ilike ${pattern}`))
}
