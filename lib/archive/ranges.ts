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

/**
 * The archive is late when less than this fraction of the RPC's history is left before events are lost: three and a
 * half of a public RPC's seven days.
 */
export const MIN_HISTORY_LEFT = 0.5
