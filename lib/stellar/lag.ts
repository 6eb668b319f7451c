/** A node that lags is at most so many ledgers behind; what is further behind is a network that has begun anew. */
const LAG = 10

/** Whether an answer as of `ledger` is that of a node which lags behind what is known of ledger `known`. */
export const isLagging = (ledger: number, known: number): boolean => ledger < known && ledger >= known - LAG
