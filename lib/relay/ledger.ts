import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { RESET_MS } from '#lib/transfers/recency.ts'

/** The ledger as this host's RPC shows it. A transfer's validity is measured by its close times. */
export interface LedgerWatch {
  /** The latest ledger's sequence. @throws LedgerError `unavailable` */
  readLatest(): Promise<number>
  /**
   * The sequence of a ledger that closed after `time` (unix ms): responses as of it, or later, show everything that was
   * applied until then.
   * @throws LedgerError `unavailable`, including when no response shows such a ledger within CLOSE_WAIT_MS
   */
  readClosedAfter(time: number): Promise<number>
  /** Asks the RPC for its latest ledger; resolves to whether it responded. */
  check(): Promise<boolean>
  /** Whether the RPC responded to the last request. */
  isReachable(): boolean
  /** The current time by the ledger's close times, in milliseconds since the epoch. */
  now(): number
  /** Seconds by which the host's clock is ahead of the ledger's; undefined until the RPC has responded. */
  offsetSeconds(): number | undefined
}

/** A host whose clock differs by more than this (seconds) has a problem: a ledger may close up to 10 s after another. */
const CLOCK_TOLERANCE_SECONDS = 30

/** How long (ms) a caller waits for the next ledger. */
const CLOSE_WAIT_MS = 8_000

/** Between two log lines about a clock that is wrong (ms). */
const COMPARE_EVERY_MS = 60 * 60_000

const LATEST = z.object({ sequence: z.number().int(), closeTime: z.coerce.number() })

export function watchLedger(network: Network): LedgerWatch {
  let isReachable = true
  /** a close time minus the monotonic clock when it was read (ms) */
  let base: number | undefined
  let offset: number | undefined
  let comparedAt = Number.NEGATIVE_INFINITY

  async function read(): Promise<z.output<typeof LATEST>> {
    const { sequence, closeTime } = await network.call('getLatestLedger', {}, LATEST)
    isReachable = true
    const reading = closeTime * 1000 - performance.now()
    // A ledger is read up to a few seconds after it closed, by a lagging node later: the freshest reading counts.
    if (base === undefined || reading > base || reading < base - RESET_MS) base = reading
    compare(now())
    return { sequence, closeTime }
  }

  const readLatest = async () => (await read()).sequence

  const now = () => (base === undefined ? Date.now() : base + performance.now())

  function compare(ledgerTime: number): void {
    offset = Math.round((Date.now() - ledgerTime) / 1000)
    if (performance.now() - comparedAt < COMPARE_EVERY_MS) return
    comparedAt = performance.now()
    const problem = describeOffset(offset)
    log(problem === undefined ? 'info' : 'error', 'clock', { offsetSeconds: offset, problem })
  }

  return {
    readLatest,
    readClosedAfter: async (time) => {
      const deadline = performance.now() + CLOSE_WAIT_MS
      for (;;) {
        const { sequence, closeTime } = await read()
        if (closeTime * 1000 > time) return sequence
        if (performance.now() > deadline) {
          throw new LedgerError(
            'unavailable',
            `the RPC has no ledger that closed after ${new Date(time).toISOString()}`,
          )
        }
        await setTimeout(network.pollMs)
      }
    },
    check: async () => {
      try {
        await readLatest()
      } catch (error) {
        if (!(error instanceof LedgerError)) throw error
        if (isReachable) log('error', 'ledger unreachable', { failure: describeFailure(error) })
        isReachable = false
      }
      return isReachable
    },
    isReachable: () => isReachable,
    now,
    offsetSeconds: () => offset,
  }
}

/** The problem of a clock that is this many seconds ahead; undefined within the tolerance. */
export function describeOffset(offsetSeconds: number): string | undefined {
  if (Math.abs(offsetSeconds) <= CLOCK_TOLERANCE_SECONDS) return undefined
  const direction = offsetSeconds > 0 ? 'ahead of' : 'behind'
  return `this host's clock is ${Math.abs(offsetSeconds)} s ${direction} the ledger's: synchronise it`
}
