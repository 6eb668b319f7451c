import type { RelayTimes } from '#lib/relay/relay.ts'

/** Short, so that what waits for another relay's death or for a rest does not wait for long. */
export const QUICK: Partial<RelayTimes> = { lease: 3, validity: 15, tick: 0.2, sweep: 2, rest: 2 }
