/** A node that lags is at most so many ledgers behind; what is further behind is a network that has begun anew. */
const LAG = 10

/** Whether an answer as of `ledger` is that of a node which lags behind what is known of ledger `known`. */
export const isLagging = (ledger: number, known: number): boolean => ledger < known && ledger >= known - LAG

/**
 * Whether every node shows by now what stood on the ledger when one answered as of `since`, if one answers as of `ledger`:
 * both may have been behind. A number far below `since` is that of a network that has begun anew.
 */
export const isBehindAll = (since: number, ledger: number): boolean => ledger >= since + 2 * LAG || ledger < since - LAG
