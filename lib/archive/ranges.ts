/** Consecutive ledgers, both ends included; empty if `throughLedger` is before `fromLedger`. */
export interface LedgerRange {
  fromLedger: number
  throughLedger: number
}

/**
 * The first ledger at or above `floor` that no range covers, and the last one before the next range.
 * @param ranges ascending, and disjoint
 */
export function firstGap(ranges: readonly LedgerRange[], floor: number): { from: number; before: number | undefined } {
  let from = floor
  for (const { fromLedger, throughLedger } of ranges) {
    if (fromLedger > from) return { from, before: fromLedger }
    from = Math.max(from, throughLedger + 1)
  }
  return { from, before: undefined }
}

/** True if the ranges cover every ledger from `from` to `through`. An empty interval is covered. */
export function covers(ranges: readonly LedgerRange[], from: number, through: number): boolean {
  if (from > through) return true
  return ranges.some(({ fromLedger, throughLedger }) => fromLedger <= from && throughLedger >= through)
}

/** The ledgers of a range without some of them. */
export function splitAt({ fromLedger, throughLedger }: LedgerRange, without: ReadonlySet<number>): LedgerRange[] {
  const parts: LedgerRange[] = []
  let from = fromLedger
  const within = [...without].filter((ledger) => ledger >= fromLedger && ledger <= throughLedger)
  for (const ledger of [...within.toSorted((one, other) => one - other), throughLedger + 1]) {
    if (ledger > from) parts.push({ fromLedger: from, throughLedger: ledger - 1 })
    from = ledger + 1
  }
  return parts
}

/** The same ledgers in as few ranges as possible, ascending. */
export function joinRanges(ranges: readonly LedgerRange[]): LedgerRange[] {
  const joined: LedgerRange[] = []
  for (const { fromLedger, throughLedger } of ranges.toSorted((one, other) => one.fromLedger - other.fromLedger)) {
    const last = joined.at(-1)
    if (!last || fromLedger > last.throughLedger + 1) joined.push({ fromLedger, throughLedger })
    else last.throughLedger = Math.max(last.throughLedger, throughLedger)
  }
  return joined
}

/**
 * The archive is late when less than this fraction of the RPC's history is left before events are lost: three and a
 * half of a public RPC's seven days.
 */
export const MIN_HISTORY_LEFT = 0.5
