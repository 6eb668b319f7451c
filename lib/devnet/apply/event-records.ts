import { StrKey, type xdr } from '@stellar/stellar-sdk'
import type { EventRecord } from '../state/record.ts'
import type { ClosedTransaction } from './close.ts'

/** Positions before and after all transactions of a ledger. */
const BEFORE = 0
const AFTER = 1_048_575

/** Paging position of an event: a TOID (ledger, transaction, operation; SEP-35) and the event's index. */
export function eventId(ledger: number, transaction: number, operation: number, index: number): string {
  const toid = (BigInt(ledger) << 32n) | (BigInt(transaction) << 12n) | BigInt(operation)
  return `${toid.toString().padStart(19, '0')}-${index.toString().padStart(10, '0')}`
}

/** The events of a ledger in the order of their ids: fees, what each operation emitted, refunds. */
export function eventRecords(
  ledger: { sequence: number; closeTime: number },
  transactions: readonly ClosedTransaction[],
) {
  const ledgerClosedAt = `${new Date(ledger.closeTime * 1000).toISOString().slice(0, 19)}Z`
  const record = (event: xdr.ContractEvent, from: ClosedTransaction, place: [number, number, number]): EventRecord => {
    const [transactionIndex, operationIndex, index] = place
    return {
      type: event.type.name,
      ledger: ledger.sequence,
      ledgerClosedAt,
      contractId: event.contractId ? StrKey.encodeContract(event.contractId.value) : '',
      id: eventId(ledger.sequence, transactionIndex, operationIndex, index),
      operationIndex,
      transactionIndex,
      txHash: from.envelope.hash,
      inSuccessfulContractCall: from.ok,
      topic: event.body.v0.topics.map((topic) => topic.toXdr('base64')),
      value: event.body.v0.data.toXdr('base64'),
    }
  }
  const ofStage = (stage: string, place: number) =>
    transactions
      .flatMap((from) =>
        from.meta.events.filter((event) => event.stage.name === stage).map(({ event }) => ({ event, from })),
      )
      .map(({ event, from }, index) => record(event, from, [place, 0, index]))
  return [
    ...ofStage('transactionEventStageBeforeAllTxs', BEFORE),
    ...transactions.flatMap((from, position) =>
      from.meta.operations.flatMap(({ events }, operation) =>
        events.map((event, index) => record(event, from, [position + 1, operation, index])),
      ),
    ),
    ...ofStage('transactionEventStageAfterAllTxs', AFTER),
  ]
}
