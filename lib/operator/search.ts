/** What somebody looks for: a hash, or an account. */
export type Sought = { hash: string } | { account: string }

/**
 * What `search` names, in the form that rows have; undefined where it can name nothing. A hash is 64 hex digits, however
 * they are written. What no row can hold, such as a NUL, PostgreSQL would not even be asked for without an error.
 */
export function soughtIn(search: string): Sought | undefined {
  const text = search.trim()
  if (/^[0-9a-f]{64}$/i.test(text)) return { hash: text.toLowerCase() }
  return /^\w+$/.test(text) ? { account: text } : undefined
}
