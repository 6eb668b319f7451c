import { xdr } from '@stellar/stellar-sdk'
import type { Ledger } from '../apply/ledger.ts'
import type { History, LocatedTransaction } from '../state/history.ts'
import { UnreadableEnvelope } from '../transaction/envelope-decoding.ts'
import { diagnosticEvent, envelopeResult, plainResult } from '../transaction/results.ts'
import { internalError, invalidParams, type Params, wrongType } from './json-rpc.ts'
import { readCursor, readLedgerPage } from './paging.ts'
import { formatXdr, readFormat, type XdrFormat } from './xdr-format.ts'

/** base64 characters of the largest envelope that is decoded: 1 MiB of XDR */
const MAX_ENVELOPE_CHARACTERS = (1024 * 1024 * 4) / 3

export function sendTransaction(ledger: Ledger, params: Params): object {
  const format = readFormat(params)
  const { envelope, verdict } = submit(ledger, params.transaction)
  const latest = ledger.history.latest()
  const answer = {
    status: verdict.status,
    hash: envelope.hash,
    latestLedger: latest.sequence,
    latestLedgerCloseTime: String(latest.closeTime),
  }
  if (verdict.status !== 'ERROR') return answer
  const { failure, isInner, feeCharged } = verdict
  const result = isInner ? envelopeResult(envelope, failure, feeCharged) : plainResult(failure, feeCharged)
  const { diagnostic } = failure
  const diagnostics = diagnostic === undefined ? undefined : [diagnosticEvent(diagnostic).toXdr('base64')]
  if (format === 'json' && !diagnostics) {
    throw internalError("couldn't decode events: xdr:DecodeUint: EOF while decoding 4 bytes")
  }
  const fields = {
    errorResult: { type: xdr.TransactionResult, xdr: result.toXdr('base64') },
    diagnosticEvents: { type: xdr.DiagnosticEvent, xdr: diagnostics },
  }
  return { ...answer, ...formatXdr(format, fields) }
}

/** Finds a transaction by its hash, or a fee bump by that of its inner transaction. */
export function getTransaction({ history }: Ledger, params: Params): object {
  const format = readFormat(params)
  const hash = readHash(params.hash ?? '')
  const latest = history.latest()
  const oldest = history.oldest()
  const range = {
    latestLedger: latest.sequence,
    latestLedgerCloseTime: String(latest.closeTime),
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTime: String(oldest.closeTime),
  }
  const location = history.find(hash.toLowerCase())
  if (!location) {
    const nothing = { ledger: 0, createdAt: '0', applicationOrder: 0, feeBump: false, events: {} }
    return { status: 'NOT_FOUND', txHash: hash, ...range, ...nothing }
  }
  return {
    ...describe(location, history, format),
    txHash: hash,
    createdAt: String(location.ledger.closeTime),
    ...range,
  }
}

/** A hash of 64 hexadecimal digits. @throws -32602 with Go's error */
function readHash(hash: unknown): string {
  if (typeof hash !== 'string') throw wrongType(hash, 'GetTransactionRequest.hash', 'string')
  const { length } = Buffer.from(hash)
  if (Math.floor(length / 2) !== 32) throw invalidParams(`unexpected hash length (${length})`)
  const [other] = Buffer.from(hash.replace(/[0-9a-fA-F]/g, ''))
  if (other !== undefined) {
    const code = other.toString(16).toUpperCase().padStart(4, '0')
    throw invalidParams(`incorrect hash: encoding/hex: invalid byte: U+${code} '${String.fromCharCode(other)}'`)
  }
  if (length > 64) throw invalidParams('incorrect hash: encoding/hex: odd length hex string')
  return hash
}

export function getTransactions({ history }: Ledger, params: Params): object {
  const page = readLedgerPage('GetTransactionsRequest', params, history)
  const { cursor, startLedger = 0, format } = page
  // A page begins after the cursor's transaction. The cursor's operation is ignored.
  const after = cursor === undefined ? toid(startLedger, 0) : readCursor(cursor, 'transaction')
  const seen = after | 0xfffn
  const latest = history.latest()
  const oldest = history.oldest()
  const located: LocatedTransaction[] = []
  let sequence = Number(after >> 32n)
  if (sequence < 0) throw invalidParams('cursor ledger sequence cannot be negative')
  if (sequence < oldest.sequence) {
    throw invalidParams(`database does not contain metadata for ledger: ${sequence}`)
  }
  const isBeyond = sequence > latest.sequence
  for (; sequence <= latest.sequence && located.length < page.limit; sequence += 1) {
    const ledger = history.ledger(sequence)
    for (const [index, transaction] of (ledger?.transactions ?? []).entries()) {
      if (!ledger || toid(sequence, index + 1) <= seen || located.length === page.limit) continue
      located.push({ ledger, transaction, order: index + 1 })
    }
  }
  const last = located.at(-1)
  const isFull = located.length === page.limit
  const end =
    isFull && last ? toid(last.ledger.sequence, last.order) : toid(latest.sequence, latest.transactions.length)
  return {
    transactions: located.map((one) => ({ ...describe(one, history, format), createdAt: one.ledger.closeTime })),
    latestLedger: latest.sequence,
    latestLedgerCloseTimestamp: latest.closeTime,
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTimestamp: oldest.closeTime,
    // The real server adds operation 1, and returns 0 for a cursor beyond the latest ledger.
    cursor: isBeyond ? '0' : String(end + 1n),
  }
}

function toid(ledger: number, transaction: number): bigint {
  return (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n)
}

function describe(location: LocatedTransaction, history: History, format: XdrFormat): object {
  const { ledger, transaction, order } = location
  const { envelopeXdr, resultXdr, resultMetaXdr, diagnosticEventsXdr, events } = history.body(location)
  return {
    status: transaction.ok ? 'SUCCESS' : 'FAILED',
    txHash: transaction.hash,
    ledger: ledger.sequence,
    applicationOrder: order,
    feeBump: transaction.innerHash !== undefined,
    ...formatXdr(format, {
      envelope: { type: xdr.TransactionEnvelope, xdr: envelopeXdr },
      result: { type: xdr.TransactionResult, xdr: resultXdr },
      resultMeta: { type: xdr.TransactionMeta, xdr: resultMetaXdr },
      diagnosticEvents: { type: xdr.DiagnosticEvent, xdr: diagnosticEventsXdr },
    }),
    events: formatXdr(format, {
      transactionEvents: { type: xdr.TransactionEvent, xdr: events.transactionEventsXdr },
      contractEvents: { type: xdr.ContractEvent, xdr: events.contractEventsXdr },
    }),
  }
}

function submit(ledger: Ledger, transaction: unknown) {
  if (transaction !== undefined && transaction !== null && typeof transaction !== 'string') {
    throw wrongType(transaction, 'SendTransactionRequest.transaction', 'string')
  }
  if (!transaction || transaction.length > MAX_ENVELOPE_CHARACTERS) throw invalidParams('invalid_xdr')
  try {
    return ledger.submit(transaction)
  } catch (cause) {
    if (cause instanceof UnreadableEnvelope) throw invalidParams('invalid_xdr')
    throw cause
  }
}
