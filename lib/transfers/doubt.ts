import { setTimeout as pause } from 'node:timers/promises'
import type { RefusalReason, SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { SILENT_SECONDS } from '#lib/stellar/view.ts'

/** How long a request waits (ms) for a response that is as recent as earlier ones. */
const DOUBT_MS = 5_000

/** How long a request waits (ms) for a ledger that closes after its arrival, and for the nodes to show it. */
const NEXT_LEDGER_MS = 15_000

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
