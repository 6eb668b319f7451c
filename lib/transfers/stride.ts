/**
 * A contested refusal may mean that the network already has the same transaction, or a rival. It is trusted only once it
 * was repeated after this many ledgers.
 */
const CONTESTED_LEDGERS = 2

/**
 * True if a refusal of ledger `since` was repeated late enough to be trusted. Undefined stands for a ledger that this
 * process doesn't know yet: another process has just received that refusal.
 */
export const isRepeatedRefusal = (since: number | undefined, repeated: number | undefined): boolean =>
  since !== undefined && repeated !== undefined && repeated >= since + CONTESTED_LEDGERS

/**
 * A transfer that no process has looked up for this many ledgers is not tracked: its process exited, or lost the
 * database.
 */
export const FORGOTTEN_LEDGERS = 3

/** After this many ledgers, an open transfer is looked up and submitted less often. */
const CALM_LEDGERS = 4

/**
 * How many ledgers pass between two lookups or submissions of a transfer that has been open for so many: one at first, then
 * two, at last three, after which it would count as not tracked.
 */
export const strideOf = (ledgersOpen: number): number =>
  Math.min(FORGOTTEN_LEDGERS, 1 + Math.max(0, Math.floor(ledgersOpen / CALM_LEDGERS)))
