import type { RelayTimes } from '#lib/relay/relay.ts'

/** Short intervals, so that tests do not wait long. */
export const SHORT_TIMES: Partial<RelayTimes> = {
  validity: 30,
  drain: 2,
  retry: 0.2,
  lease: 2,
  longestLease: 20,
  rest: 1,
  lag: 2,
  chores: 2,
  poll: 0.5,
}

/** With short pauses after a doubt: a node's lag is measured in ledgers, not seconds. */
export const OFTEN = { ...SHORT_TIMES, lag: 0.2 }
