import type { Transfer } from '#drizzle/schema/transfers.ts'
import type { Recency } from './recency.ts'
import { refusalOf } from './resubmit.ts'
import type { Envelope, RecordedTransfer } from './rows.ts'

/** How a transfer ended for the caller who waited: settled, refused by the network, or still open when time was up. */
export type Outcome =
  | { kind: 'settled'; transfer: Transfer }
  | { kind: 'refused'; resultCode: string }
  | { kind: 'open' }

interface Waiter {
  /** the envelope whose refusal ends the wait, as it was when the wait began; otherwise only the transfer's end does */
  envelope: Envelope | undefined
  finish(outcome: Outcome): void
}

/** The requests of this process that wait for transfers. They are notified of the stored result. */
export interface Waiters {
  wait(transferId: string, options: { envelope?: Envelope | undefined; waitMs: number }): Promise<Outcome>
  tellSettled(transfer: Transfer): void
  /**
   * Notifies the requests that wait for an envelope that the network rejected it. A rejection from before the wait is
   * used only if the transfer `isStuck`, so that nothing is submitted again for now.
   */
  tellRefused(recorded: RecordedTransfer, options?: { isStuck: boolean }): void
}

export function openWaiters(recency: Recency): Waiters {
  const waiting = new Map<string, Set<Waiter>>()

  function wait(
    id: string,
    { envelope, waitMs }: { envelope?: Envelope | undefined; waitMs: number },
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiter.finish({ kind: 'open' }), waitMs)
      const ofTransfer = waiting.get(id) ?? new Set()
      const waiter: Waiter = {
        envelope,
        finish: (outcome) => {
          clearTimeout(timer)
          ofTransfer.delete(waiter)
          if (ofTransfer.size === 0) waiting.delete(id)
          resolve(outcome)
        },
      }
      waiting.set(id, ofTransfer.add(waiter))
    })
  }

  function tellSettled(transfer: Transfer): void {
    for (const { finish } of [...(waiting.get(transfer.id) ?? [])]) finish({ kind: 'settled', transfer })
  }

  function tellRefused({ transfer, envelopes }: RecordedTransfer, { isStuck } = { isStuck: false }): void {
    for (const { envelope, finish } of [...(waiting.get(transfer.id) ?? [])]) {
      const refusal = envelope && refusalOf(envelope.innerHash, envelopes, recency)
      if (!refusal) continue
      const isNews = envelope.resultCode === null || envelope.sentLedger !== refusal.sentLedger
      if (isNews || isStuck) finish({ kind: 'refused', resultCode: refusal.resultCode })
    }
  }

  return { wait, tellSettled, tellRefused }
}
