import { xdr } from '@stellar/stellar-sdk'
import type { Envelope } from './envelope.ts'

/** The content of a diagnostic event: the host's error, a text, and its values. */
export interface Diagnostic {
  readonly kind: 'Budget' | 'Storage' | 'Value'
  readonly code: 'ExceededLimit' | 'InvalidInput' | 'UnexpectedType'
  readonly text: string
  readonly values: readonly bigint[]
}

/** Result codes without operation results. */
type TransactionCode =
  | 'txTooEarly'
  | 'txTooLate'
  | 'txMissingOperation'
  | 'txBadSeq'
  | 'txBadAuth'
  | 'txInsufficientBalance'
  | 'txNoAccount'
  | 'txInsufficientFee'
  | 'txBadAuthExtra'
  | 'txInternalError'
  | 'txBadMinSeqAgeOrGap'
  | 'txMalformed'
  | 'txSorobanInvalid'

/** The reason why a transaction isn't valid. */
export type Failure =
  | { readonly code: TransactionCode; readonly diagnostic?: Diagnostic }
  | { readonly code: 'txFailed'; readonly operations: xdr.OperationResult[]; readonly diagnostic?: Diagnostic }

/** The outcome of the transaction itself, without its fee bump. */
export type InnerOutcome = Failure | { readonly code: 'txSuccess'; readonly operations: xdr.OperationResult[] }

/** The diagnostic event of a failure, as in core and the RPC. */
export function diagnosticEvent({ kind, code, text, values }: Diagnostic): xdr.DiagnosticEvent {
  const error = xdr.ScError[`sce${kind}`](xdr.ScErrorCode[`scec${code}`])
  const message = xdr.ScVal.scvString(text)
  const numbers = values.map((value) => xdr.ScVal.scvU64(value))
  const body = new xdr.ContractEventV0({
    topics: [xdr.ScVal.scvSymbol('error'), xdr.ScVal.scvError(error)],
    data: numbers.length > 0 ? xdr.ScVal.scvVec([message, ...numbers]) : message,
  })
  return new xdr.DiagnosticEvent({
    inSuccessfulContractCall: false,
    event: new xdr.ContractEvent({
      ext: xdr.ExtensionPoint.v0(),
      contractId: null,
      type: xdr.ContractEventType.diagnostic,
      body: xdr.ContractEventBody.v0(body),
    }),
  })
}

/** TransactionResult of a plain transaction, or of a fee bump whose outer envelope failed. */
export function plainResult(outcome: InnerOutcome, feeCharged: bigint): xdr.TransactionResult {
  return new xdr.TransactionResult({
    feeCharged,
    result: resultArm<xdr.TransactionResultResult>(xdr.TransactionResultResult, outcome),
    ext: xdr.TransactionResultExt.v0(),
  })
}

/** TransactionResult of an envelope: a fee bump wraps the inner result, whose own fee is 0 since protocol 25. */
export function envelopeResult(envelope: Envelope, outcome: InnerOutcome, feeCharged: bigint): xdr.TransactionResult {
  if (!envelope.bump) return plainResult(outcome, feeCharged)
  const pair = new xdr.InnerTransactionResultPair({
    transactionHash: envelope.inner.hash,
    result: new xdr.InnerTransactionResult({
      feeCharged: 0n,
      result: resultArm<xdr.InnerTransactionResultResult>(xdr.InnerTransactionResultResult, outcome),
      ext: xdr.InnerTransactionResultExt.v0(),
    }),
  })
  const result =
    outcome.code === 'txSuccess'
      ? xdr.TransactionResultResult.txFeeBumpInnerSuccess(pair)
      : xdr.TransactionResultResult.txFeeBumpInnerFailed(pair)
  return new xdr.TransactionResult({ feeCharged, result, ext: xdr.TransactionResultExt.v0() })
}

/** The common part of the unions of outer and inner results. */
type ResultUnion<Arm> = Record<TransactionCode, () => Arm> &
  Record<'txSuccess' | 'txFailed', (operations: xdr.OperationResult[]) => Arm>

function resultArm<Arm>(union: ResultUnion<Arm>, outcome: InnerOutcome): Arm {
  if (outcome.code === 'txSuccess' || outcome.code === 'txFailed') return union[outcome.code](outcome.operations)
  return union[outcome.code]()
}
