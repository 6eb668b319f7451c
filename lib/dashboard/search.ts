/** A search text that is a complete hash or address. */
export type ExactSearch = { hash: string } | { account: string }

/** Recognises a complete hash (64 hex digits) or address (G… or C…), in any case. There are indexes for both. */
export function exactSearch(q: string): ExactSearch | undefined {
  if (/^[0-9a-f]{64}$/i.test(q)) return { hash: q.toLowerCase() }
  return /^[GC][A-Z2-7]{55}$/i.test(q) ? { account: q.toUpperCase() } : undefined
}
