import type { LedgerView } from '#lib/stellar/view.ts'
import { refusalOf } from './resubmit.ts'
import type { Envelope, RecordedTransfer, Transfer } from './rows.ts'

/** Whether the rows were read before new signatures replaced the refused ones, with which a wait began. */
const isRenewed = ({ innerHash, outerHash, resultCode }: Envelope, read: readonly Envelope[]): boolean =>
  resultCode === null && read.some((one) => one.innerHash === innerHash && one.outerHash !== outerHash)

/**
 * How a transfer ended for the caller who waited: settled, refused by the network, or still open when time was up. `gone`: its row
 * has disappeared, because the database was restored, or has lost what it had committed.
 */
export type Outcome =
  | { kind: 'settled'; transfer: Transfer }
  | { kind: 'refused'; resultCode: string }
  | { kind: 'open' }
  | { kind: 'gone' }

export interface WaitOptions {
  /** the maximum wait (ms) */
  waitMs: number
  /** the caller's envelope, as it was when the wait began: its refusal by the network ends the wait, too */
  envelope?: Envelope | undefined
}

/** The wait of a request for the outcome of a transfer. */
export interface Waiter {
  id: string
  envelope: Envelope | undefined
  outcome: Promise<Outcome>
  finish(outcome: Outcome): void
}

/** The requests of this process that wait for transfers. They are notified of the stored result. */
export function openWaiters(view: LedgerView) {
  const waiting = new Map<string, Set<Waiter>>()

  function add(id: string, { envelope, waitMs }: WaitOptions): Waiter {
    const { promise: outcome, resolve } = Promise.withResolvers<Outcome>()
    const timer = setTimeout(() => finish({ kind: 'open' }), waitMs)
    const finish = (result: Outcome) => {
      clearTimeout(timer)
      const others = waiting.get(id)
      if (others?.delete(waiter) && others.size === 0) waiting.delete(id)
      resolve(result)
    }
    const waiter = { id, envelope, outcome, finish }
    waiting.set(id, (waiting.get(id) ?? new Set()).add(waiter))
    return waiter
  }

  /** @param transfer undefined if it has no row any more */
  function tellEnded(id: string, transfer: Transfer | undefined): void {
    const outcome: Outcome = transfer ? { kind: 'settled', transfer } : { kind: 'gone' }
    for (const { finish } of [...(waiting.get(id) ?? [])]) finish(outcome)
  }

  /**
   * Notifies the requests that wait for an envelope that the network rejected it. While a rival may decide the transfer,
   * a rejection doesn't end the wait in which it arrives. A rejection from before the wait is used only if the envelope
   * isn't resubmitted: another one is in its place, or the transfer `isStuck`, so that none is for now.
   */
  function tellRefused({ transfer, envelopes }: RecordedTransfer, { isStuck } = { isStuck: false }): void {
    for (const { envelope, finish } of [...(waiting.get(transfer.id) ?? [])]) {
      const refusal = envelope && refusalOf(envelope.innerHash, envelopes, view, isStuck)
      if (!refusal || isRenewed(envelope, envelopes)) continue
      const { hasRival, isIdle } = refusal
      const isNews = envelope.resultCode === null || envelope.sentLedger !== refusal.sentLedger
      if (hasRival ? !isNews : isNews || isIdle || isStuck) finish({ kind: 'refused', resultCode: refusal.resultCode })
    }
  }

  return { add, tellEnded, tellRefused }
}
