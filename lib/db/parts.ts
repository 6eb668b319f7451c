/** The number of rows per INSERT: few enough that composing the statement doesn't delay other requests. */
export const ROWS_AT_ONCE = 250

/** Splits `rows`, in their order, into parts of at most ROWS_AT_ONCE. */
export function partsOf<Row>(rows: readonly Row[]): Row[][] {
  const count = Math.ceil(rows.length / ROWS_AT_ONCE)
  return Array.from({ length: count }, (_, index) => rows.slice(index * ROWS_AT_ONCE, (index + 1) * ROWS_AT_ONCE))
}
