import { xdr } from '@stellar/stellar-sdk'
import type { Call, Fault } from '../support/fault-proxy.ts'
import { notFound, sendAnswer } from '../support/transfers.ts'

type Random = (below: number) => number
type Result = Record<string, unknown>

const refusal = (code: 'txBadSeq' | 'txInsufficientFee' | 'txInsufficientBalance') =>
  sendAnswer(
    'ERROR',
    new xdr.TransactionResult({
      feeCharged: 100n,
      result: xdr.TransactionResultResult[code](),
      ext: xdr.TransactionResultExt.v0(),
    }).toXdr('base64'),
  )

/** A call is lost before or after delivery, delivered twice, cut short, or answered with nonsense. */
const TRANSPORT: Fault[] = [
  { drop: true, delivered: false },
  { drop: true, delivered: true },
  { twice: true },
  { cut: true },
  { status: 500 },
  { status: 429 },
  { error: { code: -32603, message: 'busy' } },
  { answer: {} },
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
    () => ({ rewrite: (found) => (isFound(found) ? notFound(found) : found) }),
    (random) => ({ rewrite: (found) => behind(notFound(found), 1 + random(8)) }),
    () => ({ rewrite: (found) => (found.status === 'SUCCESS' ? { ...found, status: 'FAILED' } : found) }),
    () => ({ rewrite: (found) => (isFound(found) ? { ...found, envelopeXdr: undefined } : found) }),
  ],
  getEvents: [() => ({ rewrite: endEarly })],
  getTransactions: [
    () => ({ rewrite: (page) => ({ ...page, transactions: [] }) }),
    () => ({ rewrite: (page) => ({ ...page, transactions: 'none' }) }),
  ],
}

/** A page that leaves out its last events, as its cursor says. */
function endEarly(page: Result): Result {
  const events = Array.isArray(page.events) ? (page.events as { id: string }[]).slice(0, -1) : []
  const last = events.at(-1)
  return last ? { ...page, events, cursor: last.id } : page
}

const isFound = ({ status }: Result) => status !== 'NOT_FOUND'

/** The same answer of a node that is ledgers behind. */
function behind(answer: Result, ledgers: number): Result {
  const { latestLedger, latestLedgerCloseTime } = answer
  return {
    ...answer,
    latestLedger: Number(latestLedger) - ledgers,
    latestLedgerCloseTime: String(Number(latestLedgerCloseTime) - ledgers),
  }
}

/** A node lags by at most so many ledgers; one that was restored from a backup lags by more. */
const LAG = 9
const BACKUP = 60
/** So many answers to each question are kept, for a lagging node to repeat. */
const REMEMBERED = 40

/** An RPC that lies. */
interface Liar {
  rule: (call: Call) => Promise<Fault>
  /** Answers for so many milliseconds as a node restored from a backup, which knows nothing of the last ledgers. */
  restore(milliseconds: number): void
}

/** Lies in `percent` of the calls, or delays them, and counts each time. */
export function openLiar(random: Random, percent: number, count: () => void): Liar {
  const answers = new Map<string, Result[]>()
  let restored = 0

  /** The answer that was given at most `ledgers` ago; the present one if there is no other. */
  function remember(question: string, answer: Result, ledgers: number): Result {
    const known = answers.get(question) ?? []
    answers.set(question, [...known, answer].slice(-REMEMBERED))
    const oldest = Number(answer.latestLedger) - ledgers
    return known.find(({ latestLedger }) => Number(latestLedger) >= oldest) ?? answer
  }

  const counted =
    (rewrite: (result: Result) => Result): ((result: Result) => Result) =>
    (result) => {
      const told = rewrite(result)
      if (told !== result) count()
      return told
    }

  /** The answer of a node that lags by so many ledgers. */
  function lag({ method, params }: Call, ledgers: number): Fault {
    if (method === 'sendTransaction') {
      count()
      return { answer: sendAnswer('PENDING') }
    }
    if (method === 'getTransaction') {
      return {
        rewrite: counted((found) => {
          const limit = Number(found.latestLedger) - ledgers
          return isFound(found) && Number(found.ledger) <= limit ? found : behind(unfound(found), ledgers)
        }),
      }
    }
    return { rewrite: counted((answer) => remember(askedBy(method, params), answer, ledgers)) }
  }

  function deceive(call: Call): Fault {
    const lies = LIES[call.method] ?? []
    const kind = random(3)
    if (kind === 0) return lag(call, 1 + random(LAG))
    const fault =
      kind === 1 && lies.length > 0 ? lies[random(lies.length)]?.(random) : TRANSPORT[random(TRANSPORT.length)]
    if (!fault) return 'pass'
    if (typeof fault === 'object' && 'rewrite' in fault) return { rewrite: counted(fault.rewrite) }
    count()
    return fault
  }

  return {
    restore: (milliseconds) => {
      restored = Date.now() + milliseconds
    },
    rule: async (call) => {
      if (Date.now() < restored) return lag(call, BACKUP)
      if (random(100) >= percent) {
        const { method, params } = call
        const isAnswered = method === 'getLedgerEntries' || method === 'getEvents' || method === 'simulateTransaction'
        return isAnswered ? { rewrite: (answer) => keep(askedBy(method, params), answer) } : 'pass'
      }
      if (random(4) > 0) return deceive(call)
      count()
      await new Promise((resolve) => setTimeout(resolve, random(700)))
      return 'pass'
    },
  }

  function keep(question: string, answer: Result): Result {
    remember(question, answer, 0)
    return answer
  }
}

const askedBy = (method: string, params: Record<string, unknown>) => `${method} ${JSON.stringify(params)}`

/** The answer NOT_FOUND as of the present ledger, of a node that lacks the ledger of the transaction. */
function unfound({ latestLedger, latestLedgerCloseTime, oldestLedger, oldestLedgerCloseTime }: Result): Result {
  return { status: 'NOT_FOUND', latestLedger, latestLedgerCloseTime, oldestLedger, oldestLedgerCloseTime }
}
