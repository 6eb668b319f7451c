import type { Ledger } from '../apply/ledger.ts'
import type { Found, History } from '../state/history.ts'
import { UnreadableEnvelope } from '../transaction/envelope-decoding.ts'
import { envelopeResult, plainResult } from '../transaction/results.ts'
import { diagnosticEvent } from '../transaction/soroban-validity.ts'
import { invalidParams, type Params } from './json-rpc.ts'
import { readCursor, readPage, startOf } from './paging.ts'

/** base64 characters of the largest envelope that is decoded at all: 1 MiB of XDR */
const MAX_ENVELOPE_CHARACTERS = (1024 * 1024 * 4) / 3

export function sendTransaction(ledger: Ledger, params: Params): object {
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
  const errorResultXdr = result.toXdr('base64')
  if (failure.diagnostic === undefined) return { ...answer, errorResultXdr }
  return { ...answer, errorResultXdr, diagnosticEventsXdr: [diagnosticEvent(failure.diagnostic).toXdr('base64')] }
}

/** By the hash of the envelope or, of a fee bump, that of the transaction inside. */
export function getTransaction({ history }: Ledger, params: Params): object {
  const { hash } = params
  if (typeof hash !== 'string' || !/^[0-9a-fA-F]{64}$/.test(hash)) {
    throw invalidParams('unexpected hash length or encoding: a transaction hash is 64 hex digits')
  }
  const latest = history.latest()
  const oldest = history.oldest()
  const range = {
    latestLedger: latest.sequence,
    latestLedgerCloseTime: String(latest.closeTime),
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTime: String(oldest.closeTime),
  }
  const found = history.find(hash.toLowerCase())
  if (!found) {
    const nothing = { ledger: 0, createdAt: '0', applicationOrder: 0, feeBump: false, events: {} }
    return { status: 'NOT_FOUND', txHash: hash, ...range, ...nothing }
  }
  return { ...describe(found, history), txHash: hash, createdAt: String(found.ledger.closeTime), ...range }
}

export function getTransactions({ history }: Ledger, params: Params): object {
  const page = readPage(params, { initial: 50, maximum: 200 })
  const start = startOf(page, history)
  const after = start === undefined ? readCursor(page.cursor ?? '') : toid(start, 0)
  const latest = history.latest()
  const oldest = history.oldest()
  const found: Found[] = []
  let sequence = Math.max(Number(after >> 32n), oldest.sequence)
  for (; sequence <= latest.sequence && found.length < page.limit; sequence += 1) {
    const ledger = history.ledger(sequence)
    for (const [index, transaction] of (ledger?.transactions ?? []).entries()) {
      if (!ledger || toid(sequence, index + 1) <= after || found.length === page.limit) continue
      found.push({ ledger, transaction, order: index + 1 })
    }
  }
  const last = found.at(-1)
  const isFull = last !== undefined && found.length === page.limit
  return {
    transactions: found.map((one) => ({ ...describe(one, history), createdAt: one.ledger.closeTime })),
    latestLedger: latest.sequence,
    latestLedgerCloseTimestamp: latest.closeTime,
    oldestLedger: oldest.sequence,
    oldestLedgerCloseTimestamp: oldest.closeTime,
    cursor: String(isFull ? toid(last.ledger.sequence, last.order) : toid(latest.sequence, LAST_TRANSACTION)),
  }
}

/** The last place for a transaction that a TOID knows: a cursor there is past all of its ledger. */
const LAST_TRANSACTION = 1_048_575

function toid(ledger: number, transaction: number): bigint {
  return (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n)
}

function describe(found: Found, history: History): object {
  const { ledger, transaction, order } = found
  return {
    status: transaction.ok ? 'SUCCESS' : 'FAILED',
    txHash: transaction.hash,
    ledger: ledger.sequence,
    applicationOrder: order,
    feeBump: transaction.innerHash !== undefined,
    ...history.body(found),
  }
}

function submit(ledger: Ledger, transaction: unknown) {
  if (typeof transaction !== 'string' || transaction.length > MAX_ENVELOPE_CHARACTERS)
    throw invalidParams('invalid_xdr')
  try {
    return ledger.submit(transaction)
  } catch (cause) {
    if (cause instanceof UnreadableEnvelope) throw invalidParams('invalid_xdr')
    throw cause
  }
}
