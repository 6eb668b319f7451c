import { type AnyColumn, or, type SQL, sql } from 'drizzle-orm'

/** The hash or the account that a search text names as a whole. */
export type Sought = { hash: string } | { account: string }

/** A whole hash (64 hex digits, in any case) or a whole address (G… or C…, 56 characters), for which there are indexes. */
export function wholeNameOf(q: string): Sought | undefined {
  const text = q.trim()
  if (/^[0-9a-f]{64}$/i.test(text)) return { hash: text.toLowerCase() }
  return /^[GC][A-Z2-7]{55}$/i.test(text) ? { account: text.toUpperCase() } : undefined
}

/** The condition that one of the columns contains `q`, in any case; undefined for an empty text. */
export function containing(q: string, ...columns: (AnyColumn | SQL)[]): SQL | undefined {
  const text = q.trim()
  if (text === '') return undefined
  // PostgreSQL has no NUL and no half of a surrogate pair: no row can contain either.
  if (text.includes('\0') || !text.isWellFormed()) return sql`false`
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`
  return or(...columns.map((column) => sql`${column}::text ilike ${pattern}`))
}
