import type { Ledger } from '../apply/ledger.ts'
import type { Envelope } from '../transaction/envelope.ts'
import type { LedgerLimits } from '../transaction/ledger-room.ts'
import { openQueue } from '../transaction/queue.ts'

/** Ledgers after which a node forgets that it told its peers about a message (core's MAX_SLOTS_TO_REMEMBER). */
const FLOODGATE_LEDGERS = 12

/**
 * Seconds after which a validator forgets that it demanded a transaction from a node (MAX_DELAY_DEMAND * MAX_RETRY_COUNT
 * * 2 in core's TxDemandsManager). Until then it doesn't demand it from that node again.
 */
const DEMAND_SECONDS = 60

/**
 * Something lost on the way to the validator: the `announcement`, which the validator then never sees, or the
 * `transaction` that it demands.
 */
export type Loss = 'announcement' | 'transaction'

export interface CaptiveCoreOptions {
  readonly limits: LedgerLimits
  /** The loss for an announcement of this envelope. `attempt` counts from 1. */
  readonly loses: (announcement: { readonly hash: string; readonly attempt: number }) => Loss | undefined
}

/**
 * The node inside stellar-rpc, as opposed to the validator that closes ledgers. It accepts envelopes into its own queue
 * and announces each to the validator. The client sees only this node's verdict, so an envelope whose announcement was
 * lost, or that the validator rejected, is PENDING and yet never included:
 *
 * - for four ledgers it is in this node's queue, and a resubmission is a DUPLICATE;
 * - then the node drops and bans it, and for ten ledgers the response is TRY_AGAIN_LATER;
 * - within 12 ledgers after an announcement (Floodgate), the node doesn't announce the same envelope again. Later, it
 *   announces it again when it accepts the envelope again, or after any ledger that closes while it is in its queue;
 * - within 60 seconds after a demand, the validator ignores announcements of the same envelope by this node.
 */
export function openCaptiveCore(validator: Ledger, { limits, loses }: CaptiveCoreOptions): Ledger {
  const queue = openQueue(limits)
  /** by full hash: the ledger of the last announcement, and the number of announcements */
  const announcements = new Map<string, { ledger: number; count: number }>()
  /** by full hash: when the validator demanded it (unix seconds) */
  const demands = new Map<string, number>()

  const announce = (envelope: Envelope) => {
    const { sequence } = validator.context()
    const last = announcements.get(envelope.fullHash)
    if (last && sequence - last.ledger < FLOODGATE_LEDGERS) return
    const attempt = (last?.count ?? 0) + 1
    announcements.set(envelope.fullHash, { ledger: sequence, count: attempt })
    const loss = loses({ hash: envelope.hash, attempt })
    const now = validator.now()
    if (loss === 'announcement' || now - (demands.get(envelope.fullHash) ?? -Infinity) < DEMAND_SECONDS) return
    demands.set(envelope.fullHash, now)
    if (loss !== 'transaction') validator.submit(envelope.xdr)
  }

  return {
    ...validator,
    submit(text) {
      const envelope = validator.read(text)
      const moment = validator.momentAfter(validator.context())
      const verdict = queue.add(envelope, validator.state, moment)
      if (verdict.status === 'PENDING') announce(envelope)
      return { envelope, verdict }
    },
    close() {
      const applied = validator.close()
      const { sequence, closeTime } = validator.context()
      queue.shift(applied)
      queue.dropInvalid(validator.state, { sequence: sequence + 1, closeTime, latest: 0 })
      for (const envelope of queue.pending()) announce(envelope)
      return applied
    },
  }
}
