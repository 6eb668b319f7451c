/** The number of rows per INSERT: few enough that composing the statement doesn't delay other requests. */
export const ROWS_AT_ONCE = 250

/** Splits `rows`, in their order, into parts of at most `size`. */
export function partsOf<Row>(rows: readonly Row[], size = ROWS_AT_ONCE): Row[][] {
  const count = Math.ceil(rows.length / size)
  return Array.from({ length: count }, (_, index) => rows.slice(index * size, (index + 1) * size))
}
