import { xdr } from '@stellar/stellar-sdk'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { notFound, sendAnswer } from '../support/transfers.ts'

type Random = (below: number) => number

const refusal = (code: 'txBadSeq' | 'txInsufficientFee' | 'txInsufficientBalance') =>
  sendAnswer(
    'ERROR',
    new xdr.TransactionResult({
      feeCharged: 100n,
      result: xdr.TransactionResultResult[code](),
      ext: xdr.TransactionResultExt.v0(),
    }).toXdr('base64'),
  )

/** Lost before or after it was delivered, slow, or not answered with sense. */
const TRANSPORT: ((random: Random) => Fault)[] = [
  () => ({ drop: true, delivered: false }),
  () => ({ drop: true, delivered: true }),
  () => ({ status: 500 }),
  () => ({ status: 429 }),
  () => ({ error: { code: -32603, message: 'busy' } }),
  () => ({ answer: {} }),
]

/** Untrue answers of nodes that lag, refuse, or cut short. None of them claims a ledger that it does not know. */
const LIES: Record<string, ((random: Random) => Fault)[]> = {
  sendTransaction: [
    () => ({ answer: sendAnswer('PENDING') }),
    () => ({ answer: sendAnswer('TRY_AGAIN_LATER') }),
    () => ({ answer: sendAnswer('DUPLICATE') }),
    () => ({ answer: refusal('txBadSeq') }),
    () => ({ answer: refusal('txInsufficientFee') }),
    () => ({ answer: refusal('txInsufficientBalance') }),
    () => ({ rewrite: () => refusal('txBadSeq') }),
    () => ({ rewrite: (sent) => ({ ...sent, status: 'TRY_AGAIN_LATER' }) }),
  ],
  getTransaction: [
    () => ({ rewrite: notFound }),
    (random) => ({ rewrite: (found) => behind(notFound(found), 1 + random(8)) }),
    () => ({ rewrite: (found) => (found.status === 'SUCCESS' ? { ...found, status: 'FAILED' } : found) }),
    () => ({ rewrite: ({ envelopeXdr: _, ...found }) => found }),
  ],
  getTransactions: [
    () => ({ rewrite: (page) => ({ ...page, transactions: [] }) }),
    () => ({ rewrite: (page) => ({ ...page, transactions: 'none' }) }),
  ],
}

/** The same answer of a node that is ledgers behind. */
function behind(answer: Record<string, unknown>, ledgers: number): Record<string, unknown> {
  const { latestLedger, latestLedgerCloseTime } = answer
  return {
    ...answer,
    latestLedger: Number(latestLedger) - ledgers,
    latestLedgerCloseTime: String(Number(latestLedgerCloseTime) - ledgers),
  }
}

/** A rule that lies in `percent` of the calls, or delays them, and counts how often. */
export function lie(random: Random, percent: number, count: () => void): (call: Call) => Promise<Fault> {
  return async ({ method }) => {
    if (random(100) >= percent) return 'pass'
    count()
    if (random(4) === 0) {
      await new Promise((resolve) => setTimeout(resolve, random(700)))
      return 'pass'
    }
    const lies = LIES[method] ?? []
    const faults = random(2) === 0 && lies.length > 0 ? lies : TRANSPORT
    return faults[random(faults.length)]?.(random) ?? 'pass'
  }
}
