import { xdr } from '@stellar/stellar-sdk'
import type { LedgerRecord, PhaseRecord, TransactionBody } from '../state/record.ts'
import { readHeader } from './header.ts'

type Bodies = readonly TransactionBody[]

/** XDR (base64) that contains a ledger's header, with the header as it is encoded: `readHeader` leaves an extension out. */
export function encodeWithHeader(
  value: xdr.LedgerHeaderHistoryEntry | xdr.LedgerCloseMeta,
  record: LedgerRecord,
): string {
  const encoded = Buffer.from(value.toXdr())
  const plain = Buffer.from(readHeader(record.header).toXdr())
  const at = encoded.indexOf(plain)
  const header = Buffer.from(record.header, 'base64')
  return Buffer.concat([encoded.subarray(0, at), header, encoded.subarray(at + plain.length)]).toString('base64')
}

/** The header of a ledger with its hash, as history archives keep it. */
export function headerEntry(record: LedgerRecord): xdr.LedgerHeaderHistoryEntry {
  const header = readHeader(record.header)
  const ext = xdr.LedgerHeaderHistoryEntryExt.v0()
  return new xdr.LedgerHeaderHistoryEntry({ hash: Buffer.from(record.hash, 'hex'), header, ext })
}

/** The metadata of a ledger, as indexers read it. `bodies` are the bodies of its transactions, in order. */
export function closeMeta(record: LedgerRecord, bodies: Bodies): xdr.LedgerCloseMeta {
  const ledgerHeader = headerEntry(record)
  const envelopes = bodies.map(({ envelopeXdr }) => xdr.TransactionEnvelope.fromXdr(envelopeXdr, 'base64'))
  const { previousLedgerHash } = ledgerHeader.header
  return xdr.LedgerCloseMeta.v2(
    new xdr.LedgerCloseMetaV2({
      ext: xdr.LedgerCloseMetaExt.v0(),
      ledgerHeader,
      txSet: transactionSet(previousLedgerHash.value, record.phases, envelopes),
      txProcessing: record.transactions.map(({ hash }, index) => processing(hash, bodies[index])),
      upgradesProcessing: [],
      scpInfo: [],
      totalByteSizeOfLiveSorobanState: BigInt(record.sorobanBytes),
      evictedKeys: [],
    }),
  )
}

/** The transaction set whose hash is in the header. */
export function transactionSet(
  previousLedgerHash: Uint8Array,
  [classic, soroban]: readonly [PhaseRecord, PhaseRecord],
  envelopes: readonly xdr.TransactionEnvelope[],
): xdr.GeneralizedTransactionSet {
  const rest = [...envelopes]
  const take = (count: number) => rest.splice(0, count)
  const txs = take(classic.stages.flat().reduce((sum, count) => sum + count, 0))
  const component = new xdr.TxSetComponentTxsMaybeDiscountedFee({ baseFee: BigInt(classic.baseFee), txs })
  const phases = [
    xdr.TransactionPhase.v0Components(
      txs.length > 0 ? [xdr.TxSetComponent.txsetCompTxsMaybeDiscountedFee(component)] : [],
    ),
    xdr.TransactionPhase.parallelTxsComponent(
      new xdr.ParallelTxsComponent({
        baseFee: BigInt(soroban.baseFee),
        executionStages: soroban.stages.map((threads) => threads.map(take)),
      }),
    ),
  ]
  return xdr.GeneralizedTransactionSet.v1TxSet(new xdr.TransactionSetV1({ previousLedgerHash, phases }))
}

function processing(hash: string, body: TransactionBody | undefined): xdr.TransactionResultMetaV1 {
  if (!body) throw new Error(`the transaction ${hash} has no body`)
  const changes = (list: readonly string[]) => list.map((change) => xdr.LedgerEntryChange.fromXdr(change, 'base64'))
  return new xdr.TransactionResultMetaV1({
    ext: xdr.ExtensionPoint.v0(),
    result: new xdr.TransactionResultPair({
      transactionHash: hash,
      result: xdr.TransactionResult.fromXdr(body.resultXdr, 'base64'),
    }),
    feeProcessing: changes(body.feeChangesXdr),
    txApplyProcessing: xdr.TransactionMeta.fromXdr(body.resultMetaXdr, 'base64'),
    postTxApplyFeeProcessing: changes(body.refundChangesXdr),
  })
}
