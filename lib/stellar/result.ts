import { xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'

/** @throws Refusal `unavailable`: a result that cannot be read says nothing */
export function decodeResult(resultXdr: string): xdr.TransactionResult {
  try {
    return xdr.TransactionResult.fromXdr(resultXdr, 'base64')
  } catch (cause) {
    throw new Refusal('unavailable', 'the RPC gave a result that cannot be read', { cause })
  }
}

/** What the result of a fee bump says of the transaction inside it. */
export function innerResultOf({ result }: xdr.TransactionResult): xdr.InnerTransactionResultPair | undefined {
  return 'innerResultPair' in result ? result.innerResultPair : undefined
}

/** The code that says what happened, that of the inner transaction where there is one: txSuccess, txFailed, txBadSeq … */
export function resultCodeOf(result: xdr.TransactionResult): string {
  return innerResultOf(result)?.result.result.type ?? result.result.type
}

/**
 * The last contract error among diagnostic events, whose topics are ("error", Error(Contract, #n)): the one before it
 * may be a callee's that the caller has dealt with. Only told for information, so what cannot be read is passed over.
 */
export function contractErrorOf(diagnosticEvents: readonly string[]): number | null {
  for (const encoded of diagnosticEvents.toReversed()) {
    for (const topic of topicsOf(encoded)) {
      if (topic.type === 'scvError' && topic.error.type === 'sceContract') return topic.error.contractCode
    }
  }
  return null
}

function topicsOf(diagnosticEvent: string): xdr.ScVal[] {
  try {
    return xdr.DiagnosticEvent.fromXdr(diagnosticEvent, 'base64').event.body.v0.topics
  } catch {
    return []
  }
}
