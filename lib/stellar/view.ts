/**
 * One RPC address may stand for several nodes, and a network may start over. This is how each case looks from outside, and what the
 * service does about it.
 *
 * **A node that lags.** Its responses name a lower ledger and an earlier close time than earlier responses, by at most LAG ledgers.
 * It returns NOT_FOUND for a transaction that was applied, and an account's previous sequence number. A lookup that a decision or
 * refusal depends on names the ledger it must reach, and is repeated until a response does. A refusal based on a response older than
 * the newest known ledger, or than the account's last settled ledger, is withheld for some seconds while the checks are repeated;
 * then the request is answered `unavailable`.
 *
 * **An RPC all of whose nodes lag by a few ledgers** looks like a current one. A resource fee is compared with a need that any other
 * payment may change: it is refused only by a ledger that closed after the request arrived, and so after the ledger on which the
 * client simulated.
 *
 * **A network whose nodes were restored under lower numbers.** A response names a lower ledger with a later close time, or a higher
 * ledger with an earlier one: number and time otherwise rise together. The ledger numbers in the rows are hints. One above the latest
 * known ledger is ignored, so everything is looked up and resubmitted at once. Whether it is another network altogether, the hashes of
 * the archive tell (lib/archive/identity.ts).
 *
 * **An RPC that was restored from a backup.** Ledger and close time both fall far back and catch up over minutes. Until then its
 * latest ledger is more than SILENT_SECONDS old, and NOT_FOUND from it doesn't mean that a transaction wasn't applied: a request that
 * would be refused is answered `unavailable`.
 *
 * **A response from the far future.** One is ignored. After a second one in a row it is believed, until no response has named that
 * ledger for FORGET_MS.
 */

import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { LedgerError } from './ledger-error.ts'
import { openPace } from './pace.ts'
import { LAG } from './rpc-server.ts'

/** A response from further behind is from a network that was reset. */
export { LAG }

/** True if a response as of `ledger` is from a node that lags behind `latest`, a ledger that has closed. */
export const isLagging = (ledger: number, latest: number): boolean => ledger < latest && ledger >= latest - LAG

/** True if a response as of `ledger` is too far below `latest` to be from a node that lags. */
export const isFarBelow = (ledger: number, latest: number): boolean => ledger < latest - LAG

/**
 * True if every node now shows everything that was in the ledger when a response was as of `since`, given a response as
 * of `ledger`. Both may come from lagging nodes. A ledger far below `since` means that the network was reset.
 */
export const isBehindAll = (since: number, ledger: number): boolean =>
  ledger >= since + 2 * LAG || isFarBelow(ledger, since)

/** The times a question is asked in a row, since each call may reach another node. */
const ATTEMPTS = 4

/** Repeats a call until a response is recent enough. Resolves to the last response, and whether it was. */
export async function askUntilRecent<Response>(
  ask: () => Promise<Response>,
  isRecent: (response: Response) => boolean,
): Promise<{ response: Response; isRecent: boolean }> {
  for (let attempt = 1; ; attempt += 1) {
    const response = await ask()
    if (isRecent(response)) return { response, isRecent: true }
    if (attempt === ATTEMPTS) return { response, isRecent: false }
  }
}

/** An RPC whose latest ledger closed longer ago reports itself as unhealthy, and may lack the latest transactions. */
export const SILENT_SECONDS = 30

/** A latest ledger that no response has named for this long (ms) is forgotten: the RPC was mistaken. */
const FORGET_MS = 30_000

/** A latest ledger that a response has named within this time (ms) need not be asked for. */
const CURRENT_MS = 1_500

/** A ledger that closes this much (ms) after the expected time, or this many more per second, is named twice before it is believed. */
const AHEAD_MS = 120_000
const MOST = { atOnce: 100, perSecond: 50 }

/** How long a caller waits for the next ledger (ms). */
const CLOSE_WAIT_MS = 8_000

/** A time by the close times of ledgers, unix ms. Time bounds are checked by it; the clocks of hosts and databases differ. */
export type LedgerTime = number & { readonly clock: 'ledger' }

/** What a process knows of the network's latest ledger: every response passes through it. */
export interface LedgerView {
  /** the latest known ledger; 0 before the first response */
  latestLedger(): number
  /** Whether a response has just named the latest ledger: while transfers are looked up, one does for each ledger. */
  isCurrent(): boolean
  /** Takes note of the latest ledger that a response names; `closedAt` in unix seconds. */
  observe(ledger: number, closedAt: number): void
  /** Takes note that transfers were looked up as of this ledger. */
  lookedUp(ledger: number): void
  /**
   * How long (ms) until the next round of look-ups: until the next ledger is visible, by the pace of the last ones; some seconds at
   * most. 0 if a later ledger than that of the last round is known.
   */
  dueIn(): number
  /** Seconds between two ledgers, as the last ones closed; undefined while too few are known. */
  secondsPerLedger(): number | undefined
  /** A ledger number from a row, or undefined if it is null or above the latest known ledger. */
  hint(ledger: number | null): number | undefined
  /**
   * The highest number above `ledger` that a row may have from a process that is ahead of this one. Higher ones are of a
   * network that was reset, and so are all above `ledger` once this process has seen the numbers fall.
   */
  aheadOf(ledger: number): number
  /** The current time by the ledgers' close times; by this host's clock before the first response. */
  now(): LedgerTime
  /** Seconds by which this host's clock is ahead of the ledger's; undefined before the first response. */
  offsetSeconds(): number | undefined
  /** Asks for the latest ledger. @throws LedgerError `unavailable` */
  readLatest(): Promise<number>
  /**
   * The sequence of a ledger that closed after `time`: responses as of it, or later, show everything that was applied until
   * then.
   * @throws LedgerError `unavailable`, including when no response shows such a ledger within CLOSE_WAIT_MS
   */
  readClosedAfter(time: LedgerTime): Promise<number>
  /** Asks for the latest ledger; resolves to whether the RPC responded. */
  check(): Promise<boolean>
  /** Whether the RPC responded to the last `check`. */
  isReachable(): boolean
}

/** A ledger's number. The columns that keep one are 32 bits wide. */
export const LEDGER = z
  .number()
  .int()
  .min(0)
  .max(2 ** 31 - 1)

const LATEST = z.object({ sequence: LEDGER, closeTime: z.coerce.number() })

/** The responses that name the latest ledger with its close time. A node may name a ledger of another one as it takes a transaction. */
const OBSERVED = z.union([
  z.object({ latestLedger: LEDGER, latestLedgerCloseTime: z.coerce.number().int() }),
  z.object({ latestLedger: LEDGER, latestLedgerCloseTimestamp: z.number().int() }),
  LATEST,
])

/** Takes note of the latest ledger that the result of an RPC call names, if it does. */
export function observeResult(view: LedgerView, method: string, result: unknown): void {
  if (method === 'sendTransaction') return
  const { data } = OBSERVED.safeParse(result)
  if (!data) return
  if ('sequence' in data) view.observe(data.sequence, data.closeTime)
  else
    view.observe(
      data.latestLedger,
      'latestLedgerCloseTime' in data ? data.latestLedgerCloseTime : data.latestLedgerCloseTimestamp,
    )
}

/** @param network makes RPC calls, whose results the view observes */
export function openView(network: {
  call(
    method: 'getLatestLedger',
    params: Record<string, unknown>,
    schema: typeof LATEST,
  ): Promise<z.output<typeof LATEST>>
  pollMs: number
}): LedgerView {
  let latest = { ledger: 0, closedAt: 0, namedAt: Number.NEGATIVE_INFINITY }
  let highest = 0
  let lookedUp = 0
  let isReachable = true
  let isDoubted = false
  const pace = openPace()

  /** Whether a ledger can follow the latest one: a single response from the far future must not stop anybody. */
  function canFollow(ledger: number, closedAt: number): boolean {
    const expected = pace.now()
    if (expected === undefined) return true
    const most = MOST.atOnce + Math.max(0, closedAt - latest.closedAt) * MOST.perSecond
    return closedAt * 1000 <= expected + AHEAD_MS && ledger <= latest.ledger + most
  }

  function observe(ledger: number, closedAt: number): void {
    isDoubted = !isDoubted && !canFollow(ledger, closedAt)
    if (isDoubted) return
    const namedAt = performance.now()
    const isSame = ledger === latest.ledger && closedAt === latest.closedAt
    const isOlder = ledger <= latest.ledger && closedAt <= latest.closedAt
    const isForgotten = namedAt - latest.namedAt >= FORGET_MS
    if (isSame || !isOlder || isForgotten) latest = { ledger, closedAt, namedAt }
    if (ledger === latest.ledger) pace.note(latest)
    highest = Math.max(highest, latest.ledger)
  }

  async function read(): Promise<z.output<typeof LATEST>> {
    const answer = await network.call('getLatestLedger', {}, LATEST)
    isReachable = true
    return answer
  }

  const now = () => (pace.now() ?? Date.now()) as LedgerTime

  return {
    latestLedger: () => latest.ledger,
    isCurrent: () => performance.now() - latest.namedAt < CURRENT_MS,
    observe,
    lookedUp: (ledger) => {
      lookedUp = ledger
    },
    dueIn: () => (latest.ledger > lookedUp ? 0 : pace.dueIn()),
    secondsPerLedger: pace.secondsPerLedger,
    hint: (ledger) => (ledger === null || ledger > latest.ledger ? undefined : ledger),
    aheadOf: (ledger) => (highest > ledger ? ledger : ledger + LAG),
    now,
    offsetSeconds: () => (pace.now() === undefined ? undefined : Math.round((Date.now() - now()) / 1000)),
    readLatest: async () => (await read()).sequence,
    readClosedAfter: async (time) => {
      const deadline = performance.now() + CLOSE_WAIT_MS
      for (;;) {
        const { sequence, closeTime } = await read()
        if (closeTime * 1000 > time) return sequence
        if (performance.now() > deadline) {
          const moment = new Date(time).toISOString()
          throw new LedgerError('unavailable', `the RPC has no ledger that closed after ${moment}`)
        }
        await new Promise((resolve) => setTimeout(resolve, network.pollMs))
      }
    },
    check: async () => {
      try {
        await read()
      } catch (error) {
        if (!(error instanceof LedgerError)) throw error
        if (isReachable) log('error', 'ledger unreachable', { failure: describeFailure(error) })
        isReachable = false
      }
      return isReachable
    },
    isReachable: () => isReachable,
  }
}
