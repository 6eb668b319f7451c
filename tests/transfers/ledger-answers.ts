import { xdr } from '@stellar/stellar-sdk'

/** The outcome of a transaction, as a ledger writes it. */
export type Outcome = 'success' | 'trapped' | 'bad-seq'

function resultsOf(outcome: 'success' | 'trapped'): xdr.OperationResult[] {
  const invoked =
    outcome === 'success'
      ? xdr.InvokeHostFunctionResult.invokeHostFunctionSuccess(new Uint8Array(32))
      : xdr.InvokeHostFunctionResult.invokeHostFunctionTrapped()
  return [xdr.OperationResult.opInner(xdr.OperationResultTr.invokeHostFunction(invoked))]
}

function encode(result: xdr.TransactionResultResult, feeCharged: bigint): string {
  return new xdr.TransactionResult({ feeCharged, result, ext: xdr.TransactionResultExt.v0() }).toXdr('base64')
}

/** The result of a transaction without a fee bump. */
export function plainResult(outcome: Outcome, feeCharged = 4_321n): string {
  const { txSuccess, txFailed, txBadSeq } = xdr.TransactionResultResult
  if (outcome === 'bad-seq') return encode(txBadSeq(), feeCharged)
  return encode(outcome === 'success' ? txSuccess(resultsOf(outcome)) : txFailed(resultsOf(outcome)), feeCharged)
}

/** The result of a fee bump around the inner transaction of `innerHash`, 64 hex digits. */
export function feeBumpResult(innerHash: string, outcome: Outcome, feeCharged = 87_654n): string {
  const { txSuccess, txFailed, txBadSeq } = xdr.InnerTransactionResultResult
  const ended = () => {
    if (outcome === 'bad-seq') return txBadSeq()
    return outcome === 'success' ? txSuccess(resultsOf(outcome)) : txFailed(resultsOf(outcome))
  }
  const result = new xdr.InnerTransactionResult({
    feeCharged: 0n,
    result: ended(),
    ext: xdr.InnerTransactionResultExt.v0(),
  })
  const pair = new xdr.InnerTransactionResultPair({ transactionHash: Buffer.from(innerHash, 'hex'), result })
  const { txFeeBumpInnerSuccess, txFeeBumpInnerFailed } = xdr.TransactionResultResult
  return encode(outcome === 'success' ? txFeeBumpInnerSuccess(pair) : txFeeBumpInnerFailed(pair), feeCharged)
}

/** The result of a transaction that failed before any operation, by the name of its code. */
export function bareResult(
  code:
    | 'txBadSeq'
    | 'txTooEarly'
    | 'txInsufficientFee'
    | 'txInsufficientBalance'
    | 'txBadAuth'
    | 'txTooLate'
    | 'txBadAuthExtra',
): string {
  return encode(xdr.TransactionResultResult[code](), 100n)
}

/** A diagnostic event of the topics ("error", `error`). */
export function errorEvent(error: xdr.ScError): string {
  return diagnosticEvent([xdr.ScVal.scvSymbol('error'), xdr.ScVal.scvError(error)])
}

export function diagnosticEvent(topics: xdr.ScVal[]): string {
  const event = new xdr.ContractEvent({
    ext: xdr.ExtensionPoint.v0(),
    contractId: null,
    type: xdr.ContractEventType.diagnostic,
    body: xdr.ContractEventBody.v0(new xdr.ContractEventV0({ topics, data: xdr.ScVal.scvVoid() })),
  })
  return new xdr.DiagnosticEvent({ inSuccessfulContractCall: false, event }).toXdr('base64')
}
