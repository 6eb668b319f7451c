import { Refusal } from '#lib/http/refusal.ts'
import type { Lookup } from '#lib/stellar/look-up.ts'
import { contractErrorOf, decodeResult, innerResultOf, resultCodeOf } from '#lib/stellar/result.ts'

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
