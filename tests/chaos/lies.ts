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

/** Faulty responses of nodes that lag, refuse, or truncate. None of them names a ledger that it doesn't have. */
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

/** A page without its last events, whose cursor admits it. */
function endEarly(page: Result): Result {
  const events = Array.isArray(page.events) ? (page.events as { id: string }[]).slice(0, -1) : []
  const last = events.at(-1)
  return last ? { ...page, events, cursor: last.id } : page
}

const isFound = ({ status }: Result) => status !== 'NOT_FOUND'

/** The same response from a node that is some ledgers behind. */
function behind(answer: Result, ledgers: number): Result {
  const { latestLedger, latestLedgerCloseTime } = answer
  return {
    ...answer,
    latestLedger: Number(latestLedger) - ledgers,
    latestLedgerCloseTime: String(Number(latestLedgerCloseTime) - ledgers),
  }
}

/** A node lags by at most this many ledgers; a node restored from a backup lags by more. */
const LAG = 9
const BACKUP = 60
/** The number of responses kept per request, for a lagging node to repeat. */
const REMEMBERED = 40

/** An RPC that lies. */
interface Liar {
  rule: (call: Call) => Promise<Fault>
  /** For this many milliseconds, responds like a node restored from a backup, which lacks the last ledgers. */
  restore(milliseconds: number): void
}

/** Changes or delays `percent` of the responses, and counts each time. */
export function openLiar(random: Random, percent: number, count: () => void): Liar {
  const answers = new Map<string, Result[]>()
  let restored = 0

  /** The response of at most `ledgers` ago; the current one if there is none. */
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

  /** The response of a node that lags by this many ledgers. */
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

/** NOT_FOUND as of the current ledger, from a node that lacks the transaction's ledger. */
function unfound({ latestLedger, latestLedgerCloseTime, oldestLedger, oldestLedgerCloseTime }: Result): Result {
  return { status: 'NOT_FOUND', latestLedger, latestLedgerCloseTime, oldestLedger, oldestLedgerCloseTime }
}
