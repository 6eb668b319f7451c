/** As many rows as one statement inserts: so few that composing it holds up no other request. */
const ROWS_AT_ONCE = 250

/** `rows` in parts of at most `size`, in their order. */
export function partsOf<Row>(rows: readonly Row[], size = ROWS_AT_ONCE): Row[][] {
  const count = Math.ceil(rows.length / size)
  return Array.from({ length: count }, (_, index) => rows.slice(index * size, (index + 1) * size))
}
