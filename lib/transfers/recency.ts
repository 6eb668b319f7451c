/**
 * One RPC address may stand for several nodes, and a network may start over. This is how each case looks from outside,
 * and what this folder does about it.
 *
 * **A node that lags.** Its responses name a lower ledger and an earlier close time than earlier responses, by at most
 * LAG ledgers. It returns NOT_FOUND for a transaction that was applied, and an account's previous sequence number. A
 * lookup that a decision or refusal depends on names the ledger it must reach, and is repeated until a response does. A
 * refusal based on a response older than the newest known ledger, or than the account's last settled ledger, is
 * withheld for up to DOUBT_MS while the checks are repeated; then the request is answered `unavailable`.
 *
 * **An RPC all of whose nodes lag by a few ledgers** looks like a current one. A resource fee is compared with a need
 * that any other payment may change: it is refused only by a ledger that closed after the request arrived, and so after
 * the ledger on which the client simulated.
 *
 * **A network that was reset, or whose nodes were restored under lower numbers.** A response names a lower ledger with
 * a later close time, or a higher ledger with an earlier one: number and time otherwise rise together. The ledger
 * numbers in the rows (`sent_ledger`, `refused_ledger`, `looked_up_ledger`) are hints. One above the latest known
 * ledger is ignored, so everything is looked up and resubmitted at once.
 *
 * **An RPC that was restored from a backup.** Ledger and close time both fall far back and catch up over minutes. Until
 * then its latest ledger is more than SILENT_SECONDS old, and NOT_FOUND from it doesn't mean that a transaction wasn't
 * applied: a request that would be refused is answered `unavailable`.
 *
 * **A response from the far future.** It is believed until no response has named that ledger for FORGET_MS.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { RefusalReason, SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { openPace } from './pace.ts'

/** The number of ledgers that a node may lag. A response from further behind is from a network that was reset. */
export const LAG = 10

/** True if a response as of `ledger` is from a node that lags behind `latest`, a ledger that has closed. */
export const isLagging = (ledger: number, latest: number): boolean => ledger < latest && ledger >= latest - LAG

/** True if a response as of `ledger` is too far below `latest` to be from a node that lags. */
export const isFarBelow = (ledger: number, latest: number): boolean => ledger < latest - LAG

/** A response whose ledger closed this much (ms) before the expected time is from a network that was reset. */
export const RESET_MS = 120_000

/**
 * True if every node now shows everything that was in the ledger when a response was as of `since`, given a response as
 * of `ledger`. Both may come from lagging nodes. A ledger far below `since` means that the network was reset.
 */
export const isBehindAll = (since: number, ledger: number): boolean =>
  ledger >= since + 2 * LAG || isFarBelow(ledger, since)

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

/** The times a hash is looked up in a row, since each call may reach another node. */
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

/** How long a request waits (ms) for a response that is as recent as earlier ones. */
const DOUBT_MS = 5_000

/** How long a request waits (ms) for a ledger that closes after its arrival, and for the nodes to show it. */
const NEXT_LEDGER_MS = 15_000

/** An RPC whose latest ledger closed longer ago reports itself as unhealthy, and may lack the latest transactions. */
export const SILENT_SECONDS = 30

/** A latest ledger that no response has named for this long (ms) is forgotten: the RPC was mistaken. */
const FORGET_MS = 30_000

/** A latest ledger that a response has named within this time (ms) need not be asked for. */
const CURRENT_MS = 1_500

/** What a process has learned about the network's latest ledger. */
export interface Recency {
  /** the latest known ledger; 0 before the first response */
  latestLedger(): number
  /** Whether a response has just named the latest ledger: while transfers are looked up, one does for each ledger. */
  isCurrent(): boolean
  /** Takes note of the latest ledger that a response names; `closedAt` in unix seconds. */
  observe(ledger: number, closedAt: number): void
  /** `observe`, for the response of a round, which looks transfers up as of that ledger. */
  observeRound(ledger: number, closedAt: number): void
  /**
   * How long (ms) until the next round: until the next ledger is visible, by the pace of the last ones; at most
   * LONGEST_PAUSE_MS. 0 if a later ledger than that of the last round is known.
   */
  dueIn(): number
  /** A ledger number from a row, or undefined if it is null or above the latest known ledger. */
  hint(ledger: number | null): number | undefined
  /**
   * The highest number above `ledger` that a row may have from a process that is ahead of this one. Higher ones are of a
   * network that was reset, and so are all above `ledger` once this process has seen the numbers fall.
   */
  aheadOf(ledger: number): number
}

/** @param now unix milliseconds */
export function openRecency(now: () => number): Recency {
  let latest = { ledger: 0, closedAt: 0, namedAt: 0 }
  let highest = 0
  let lookedUp = 0
  const pace = openPace()

  function observe(ledger: number, closedAt: number): void {
    const isSame = ledger === latest.ledger && closedAt === latest.closedAt
    const isOlder = ledger <= latest.ledger && closedAt <= latest.closedAt
    const isForgotten = now() - latest.namedAt >= FORGET_MS
    if (isSame || !isOlder || isForgotten) latest = { ledger, closedAt, namedAt: now() }
    if (ledger === latest.ledger) pace.note(latest)
    highest = Math.max(highest, latest.ledger)
  }

  function observeRound(ledger: number, closedAt: number): void {
    observe(ledger, closedAt)
    lookedUp = ledger
  }

  return {
    latestLedger: () => latest.ledger,
    // A clock that was set back must not make an old response look recent.
    isCurrent: () => Math.abs(now() - latest.namedAt) < CURRENT_MS,
    observe,
    observeRound,
    dueIn: () => (latest.ledger > lookedUp ? 0 : pace.dueIn()),
    hint: (ledger) => (ledger === null || ledger > latest.ledger ? undefined : ledger),
    aheadOf: (ledger) => (highest > ledger ? ledger : ledger + LAG),
  }
}

/**
 * The refusals based on time, account and simulation: a moment later they may no longer apply. Each may only mean that
 * the transaction was already applied, so it is looked up before a refusal is returned.
 */
const OF_THE_MOMENT: ReadonlySet<RefusalReason> = new Set([
  'not-yet-valid',
  'no-expiry',
  'expires-too-soon',
  'expires-too-late',
  'bad-signature',
  'too-little-weight',
  'extra-signature',
  'no-account',
  'sequence',
  'excess-instructions',
  'excess-bytes',
  'excess-footprint',
  'too-few-resources',
  'low-resource-fee',
  'excess-resource-fee',
  'would-fail',
  'live-until',
])

export const isOfTheMoment = (reason: RefusalReason): boolean => OF_THE_MOMENT.has(reason)

const BY_RENT: ReadonlySet<RefusalReason> = new Set(['low-resource-fee', 'excess-resource-fee'])

/** Whether a refusal depends on the rent that other payments paid. */
export const dependsOnRent = (reason: RefusalReason): boolean => BY_RENT.has(reason)

/** A refusal is based on a ledger that closed after this time (unix seconds); `now` and `arrivedAt` in unix ms. */
export const closedAfter = (reason: RefusalReason, { now, arrivedAt }: { now: number; arrivedAt: number }): number =>
  dependsOnRent(reason) ? Math.floor(arrivedAt / 1000) : now / 1000 - SILENT_SECONDS

/** The result of checks that relied on a response that is too old, with the refusal that they led to, if any. */
export interface Doubt {
  doubt: SponsorRefusal | undefined
}

/**
 * Repeats the checks of a request until a response is recent enough to refuse or to agree on.
 * @throws LedgerError `unavailable` if none is in time; the reason of `signal`
 */
export async function checkUntilRecent<Verdict extends object>(
  check: (isFirst: boolean) => Promise<Verdict | Doubt>,
  { pollMs, signal }: { pollMs: number; signal: AbortSignal | undefined },
): Promise<Verdict> {
  const beganAt = performance.now()
  for (let isFirst = true; ; isFirst = false) {
    signal?.throwIfAborted()
    const verdict = await check(isFirst)
    if (!('doubt' in verdict)) return verdict
    const { doubt } = verdict
    const patienceMs = doubt && dependsOnRent(doubt.reason) ? NEXT_LEDGER_MS : DOUBT_MS
    if (performance.now() >= beganAt + patienceMs) {
      throw new LedgerError('unavailable', 'the ledger has fallen behind', { cause: doubt })
    }
    await pause(pollMs)
  }
}
