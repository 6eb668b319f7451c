import type { Ledger } from '../apply/ledger.ts'
import { checkEnvelope } from '../transaction/envelope-validity.ts'

/**
 * A node that is `lag` ledgers behind the network. Its entries, history and simulations are as of an earlier ledger,
 * and it rejects envelopes that aren't valid there. Accepted envelopes reach the network immediately.
 */
export function lagBehind(ledger: Ledger, lag: number): Ledger {
  const { history, past } = ledger
  // After startup no past is in memory, so the node falls behind as ledgers close.
  const behind = () => Math.min(lag, past.depth())
  const latest = () => {
    const record = history.ledger(history.latest().sequence - behind())
    if (!record) throw new Error('a node cannot lag behind its own history')
    return record
  }
  const context = () => {
    const { sequence, closeTime } = latest()
    return { ...ledger.context(), sequence, closeTime }
  }
  return {
    ...ledger,
    get state() {
      return past.at(behind())
    },
    context,
    history: {
      ...history,
      latest,
      ledger: (sequence) => (sequence <= latest().sequence ? history.ledger(sequence) : undefined),
      find(hash) {
        const location = history.find(hash)
        return location && location.ledger.sequence <= latest().sequence ? location : undefined
      },
    },
    submit(text) {
      const envelope = ledger.read(text)
      const invalid = checkEnvelope(envelope, past.at(behind()), ledger.momentAfter(context()))
      return invalid ? { envelope, verdict: { status: 'ERROR', ...invalid } } : ledger.submit(text)
    },
  }
}
