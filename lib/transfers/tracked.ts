import type { Transfer } from '#drizzle/schema/transfers.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Decision } from './decide.ts'
import type { Envelope, RecordedTransfer } from './rows.ts'

/** How it ended for the caller who waited: settled, refused by the network, or still open when patience ran out. */
export type Outcome =
  | { kind: 'settled'; transfer: Transfer }
  | { kind: 'refused'; resultCode: string }
  | { kind: 'open' }

interface Waiter {
  /** the envelope whose refusal ends the wait; undefined: only the transfer's own end does */
  innerHash: string | undefined
  finish(outcome: Outcome): void
}

/** An open transfer that this process tracks. */
export interface Tracked extends RecordedTransfer {
  /** last ledger of an answer that did not know the transfer */
  lookedUpTo: number
  /** latest ledger known when an envelope was last sent, or named by the answer to that; -1 before */
  sentAt: number
  /** by inner hash: the code with which the network refused the envelope, and the ledger from which it is believed */
  refusals: Map<string, { resultCode: string; from: number }>
  /** the decision of the ledger, and the envelopes that were looked up for it, until the database has it */
  decision: { made: Decision; lookedUp: string } | undefined
  /** the poll that requests wait for */
  polling: Promise<void> | undefined
  /** when that poll last ended, by the clock of `performance` */
  polledAt: number
  /** how many steps wait or run; one runs at a time */
  steps: number
  tail: Promise<void>
  /** the last failure that was logged, so that an outage is one line and not one for each poll */
  failure: string | undefined
  waiters: Set<Waiter>
}

/** @param isNew recorded by this process a moment ago: it cannot stand in a ledger that closed before */
export function newTracked(recorded: RecordedTransfer, isNew: boolean): Tracked {
  return {
    ...recorded,
    lookedUpTo: isNew ? recorded.transfer.recordedLedger : -1,
    sentAt: -1,
    refusals: new Map(),
    decision: undefined,
    polling: undefined,
    polledAt: Number.NEGATIVE_INFINITY,
    steps: 0,
    tail: Promise.resolve(),
    failure: undefined,
    waiters: new Set(),
  }
}

/**
 * Takes over a rival, or renewed signatures, that a request has recorded. Ledgers read before may hold them, so the
 * look-up begins anew.
 */
export function renew(entry: Tracked, recorded: RecordedTransfer): void {
  Object.assign(entry, recorded, { lookedUpTo: -1 })
  for (const { innerHash, resultCode } of recorded.envelopes) if (resultCode === null) entry.refusals.delete(innerHash)
}

/** @param patience milliseconds */
export function waitFor(
  entry: Tracked,
  { innerHash, patience }: { innerHash?: string | undefined; patience: number },
): Promise<Outcome> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => waiter.finish({ kind: 'open' }), patience)
    const waiter: Waiter = {
      innerHash,
      finish: (outcome) => {
        clearTimeout(timer)
        entry.waiters.delete(waiter)
        resolve(outcome)
      },
    }
    entry.waiters.add(waiter)
  })
}

export function tellSettled(entry: Tracked, transfer: Transfer): void {
  for (const { finish } of [...entry.waiters]) finish({ kind: 'settled', transfer })
}

/** Tells those who wait for an envelope that the network refused, unless another envelope may still make the transfer. */
export function tellRefused(entry: Tracked, ledger: number): void {
  for (const { innerHash, finish } of [...entry.waiters]) {
    const refusal = innerHash === undefined ? undefined : entry.refusals.get(innerHash)
    if (!refusal || ledger < refusal.from || entry.envelopes.some((other) => isRival(other, innerHash))) continue
    finish({ kind: 'refused', resultCode: refusal.resultCode })
  }
}

const isRival = (other: Envelope, innerHash: string | undefined) =>
  other.innerHash !== innerHash && other.signed !== null && other.resultCode === null

/** One step at a time for each transfer. What fails is logged, and done again at a later poll. */
export function perform(entry: Tracked, step: () => Promise<void>): Promise<void> {
  entry.steps += 1
  entry.tail = entry.tail.then(async () => {
    try {
      await step()
      entry.failure = undefined
    } catch (error) {
      const failure = describeFailure(error)
      if (failure !== entry.failure) log('error', 'submission', { transfer: entry.transfer.id, failure })
      entry.failure = failure
    } finally {
      entry.steps -= 1
    }
  })
  return entry.tail
}
