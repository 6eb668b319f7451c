import { xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import type { Network } from '#lib/ledger/network.ts'
import { Refusal } from '#lib/refusal.ts'

const seconds = z.union([z.number().int(), z.string().regex(/^\d+$/)]).transform(Number)

/** What a look-up by hash says: where the network is, and whether it knows the transaction. */
const LOOKUP = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('NOT_FOUND'),
    latestLedger: z.number().int(),
    latestLedgerCloseTime: seconds,
    oldestLedger: z.number().int(),
  }),
  z.object({
    status: z.enum(['SUCCESS', 'FAILED']),
    latestLedger: z.number().int(),
    ledger: z.number().int(),
    resultXdr: z.string(),
    diagnosticEventsXdr: z.array(z.string()).nullish(),
  }),
])

export type Lookup = z.output<typeof LOOKUP>

/** @throws Refusal `unavailable` */
export function lookUp(network: Network, hash: string): Promise<Lookup> {
  return network.call('getTransaction', { hash }, LOOKUP)
}

/** What stands on the ledger about a transfer. */
export interface LedgerRecord {
  succeeded: boolean
  /** the hash under which it stands: ours, or the inner one if the client sent that by itself */
  hash: string
  ledger: number
  /** stroops that our sponsor paid */
  feeCharged: bigint
  /** code of the innermost result as the SDK spells it: txSuccess, txFailed, txBadSeq … */
  resultCode: string
  /** number of the contract error behind a failure */
  contractError: number | null
}

/**
 * Reads what was found under `hash`; `ours` says whether that is the fee bump that our sponsor pays.
 * @throws Refusal `unavailable` when the answer contradicts itself: then it is no answer
 */
export function readRecord(
  found: Exclude<Lookup, { status: 'NOT_FOUND' }>,
  { hash, innerHash, ours }: { hash: string; innerHash: string; ours: boolean },
): LedgerRecord {
  const result = decodeResult(found.resultXdr)
  const succeeded = found.status === 'SUCCESS'
  const inner = innerResultOf(result)
  const consistent =
    succeeded === (result.result.type === 'txSuccess' || result.result.type === 'txFeeBumpInnerSuccess') &&
    (inner ? inner.transactionHash.toString() === innerHash : !ours)
  if (!consistent) throw new Refusal('unavailable', 'the RPC contradicts itself')
  return {
    succeeded,
    hash,
    ledger: found.ledger,
    feeCharged: ours ? result.feeCharged : 0n,
    resultCode: resultCodeOf(result),
    contractError: succeeded ? null : contractErrorOf(found.diagnosticEventsXdr ?? []),
  }
}

/** @throws Refusal `unavailable`: a result that cannot be read says nothing */
export function decodeResult(resultXdr: string): xdr.TransactionResult {
  try {
    return xdr.TransactionResult.fromXdr(resultXdr, 'base64')
  } catch (cause) {
    throw new Refusal('unavailable', 'the RPC gave a result that cannot be read', { cause })
  }
}

function innerResultOf({ result }: xdr.TransactionResult): xdr.InnerTransactionResultPair | undefined {
  return 'innerResultPair' in result ? result.innerResultPair : undefined
}

/** The code that says what happened: that of the inner transaction where there is one. */
export function resultCodeOf(result: xdr.TransactionResult): string {
  return innerResultOf(result)?.result.result.type ?? result.result.type
}

/**
 * The last contract error among diagnostic events, whose topics are ("error", Error(Contract, #n)): the one before it
 * may be a callee's that the caller has dealt with. Only told for information, so what cannot be read is passed over.
 */
function contractErrorOf(diagnosticEvents: readonly string[]): number | null {
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
