import { xdr } from '@stellar/stellar-sdk'
import type { LedgerRecord, PhaseRecord, Span, TransactionBody } from '../state/record.ts'
import type { Phase, TransactionSet } from '../transaction/transaction-set.ts'
import type { ClosedTransaction } from './close.ts'
import { eventRecords } from './event-records.ts'

interface ClosedLedger {
  readonly sequence: number
  readonly closeTime: number
  readonly hash: Uint8Array
  readonly header: Uint8Array
  readonly sorobanBytes: number
  readonly phases: readonly [PhaseRecord, PhaseRecord]
  readonly transactions: readonly ClosedTransaction[]
}

/** The record of a closed ledger, which is read at every start, and the body, which is read on demand. */
export function recordLedger(closed: ClosedLedger): { record: LedgerRecord; body: Uint8Array } {
  const parts: Buffer[] = []
  let end = 0
  const add = (value: unknown): Span => {
    const part = Buffer.from(JSON.stringify(value))
    parts.push(part)
    end += part.length
    return [end - part.length, part.length]
  }
  const transactions = closed.transactions.map((transaction) => ({
    hash: transaction.envelope.hash,
    innerHash: transaction.envelope.innerHash,
    ok: transaction.ok,
    isSoroban: transaction.envelope.inner.isSoroban,
    inclusionFee: String(transaction.inclusionFee),
    at: add(transactionBody(transaction)),
  }))
  const events = eventRecords(closed, closed.transactions)
  const contracts = Array.from(new Set(events.map(({ contractId }) => contractId)))
  const record = {
    sequence: closed.sequence,
    closeTime: closed.closeTime,
    hash: Buffer.from(closed.hash).toString('hex'),
    header: Buffer.from(closed.header).toString('base64'),
    sorobanBytes: closed.sorobanBytes,
    phases: closed.phases,
    transactions,
    events: events.length > 0 ? { at: add(events), contracts } : undefined,
  }
  return { record, body: Buffer.concat(parts) }
}

export function recordPhases({ classic, soroban }: TransactionSet): [PhaseRecord, PhaseRecord] {
  const record = ({ baseFee, stages }: Phase): PhaseRecord => ({
    baseFee: String(baseFee),
    stages: stages.map((threads) => threads.map((thread) => thread.length)),
  })
  return [record(classic), record(soroban)]
}

const inBase64 = (changes: readonly xdr.LedgerEntryChange[]) => changes.map((change) => change.toXdr('base64'))

function transactionBody({ envelope, result, meta, ...closed }: ClosedTransaction): TransactionBody {
  return {
    envelopeXdr: envelope.xdr,
    resultXdr: result.toXdr('base64'),
    resultMetaXdr: Buffer.from(xdr.TransactionMeta.v4(meta).toXdr()).toString('base64'),
    ...(meta.diagnosticEvents.length > 0
      ? { diagnosticEventsXdr: meta.diagnosticEvents.map((event) => event.toXdr('base64')) }
      : {}),
    feeChangesXdr: inBase64(closed.feeChanges),
    refundChangesXdr: inBase64(closed.refundChanges),
    events: {
      transactionEventsXdr: meta.events.map((event) => event.toXdr('base64')),
      // A failed transaction has no operation metadata.
      ...(meta.operations.length > 0 && {
        contractEventsXdr: meta.operations.map(({ events }) => events.map((event) => event.toXdr('base64'))),
      }),
    },
  }
}
