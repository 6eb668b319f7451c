import { TransactionBuilder } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'
import type { FoundTransaction } from '#lib/stellar/look-up.ts'
import { contractErrorOf, decodeResult, innerResultOf, resultCodeOf } from '#lib/stellar/result.ts'

/** What stands on the ledger about an envelope. */
export interface LedgerRecord {
  succeeded: boolean
  /** whether it used up the account's sequence number; a transaction that did not may leave room for a rival */
  consumed: boolean
  /** inner hash of the envelope that stands there */
  applied: string
  /** the hash under which it stands: that of our fee bump, or the inner one */
  hash: string
  ledger: number
  /** when that ledger closed, unix seconds */
  closedAt: number
  /** stroops that the service paid */
  feeCharged: bigint
  /** code of the innermost result as the SDK spells it: txSuccess, txFailed, txBadSeq … */
  resultCode: string
  /** number of the contract error behind a failure */
  contractError: number | null
}

/** The network checks these before the sequence number is used up: at apply, too. */
const NOT_CONSUMED = new Set([
  'txTooEarly',
  'txTooLate',
  'txMissingOperation',
  'txBadSeq',
  'txNoAccount',
  'txInsufficientFee',
  'txMalformed',
  'txSorobanInvalid',
  'txNotSupported',
])

/** What the record is held against. `sponsor` pays the fee bumps of the service; null for a deposit, which pays itself. */
export interface Expected {
  innerHash: string
  sponsor: string | null
  passphrase: string
}

/**
 * Reads what was found under a hash of an envelope, outer or inner.
 * @throws Refusal `unavailable` when the answer contradicts itself: then it is no answer
 */
export function readRecord(found: FoundTransaction, { innerHash, sponsor, passphrase }: Expected): LedgerRecord {
  const envelope = decodeEnvelope(found.envelopeXdr, passphrase)
  const result = decodeResult(found.resultXdr)
  const inner = innerResultOf(result)
  const succeeded = found.status === 'SUCCESS'
  const resultCode = resultCodeOf(result)
  const consistent =
    envelope.innerHash === innerHash &&
    succeeded === (result.result.type === 'txSuccess' || result.result.type === 'txFeeBumpInnerSuccess') &&
    (inner === undefined || inner.transactionHash.toString() === innerHash)
  if (!consistent) throw contradiction()
  const { feeSource } = envelope
  const isOurBump = feeSource !== undefined && feeSource === sponsor
  const isOwnDeposit = feeSource === undefined && sponsor === null
  return {
    succeeded,
    consumed: succeeded || !NOT_CONSUMED.has(resultCode),
    applied: innerHash,
    hash: isOurBump ? envelope.hash : innerHash,
    ledger: found.ledger,
    closedAt: found.createdAt,
    feeCharged: isOurBump || isOwnDeposit ? result.feeCharged : 0n,
    resultCode,
    contractError: succeeded ? null : contractErrorOf(found.diagnosticEventsXdr ?? []),
  }
}

/** `feeSource` of a fee bump only; there, `hash` is the outer one. */
function decodeEnvelope(xdr: string, passphrase: string): { hash: string; innerHash: string; feeSource?: string } {
  try {
    const built = TransactionBuilder.fromXdr(xdr, passphrase)
    const hash = hex(built.hash())
    if (!('innerTransaction' in built)) return { hash, innerHash: hash }
    return { hash, innerHash: hex(built.innerTransaction.hash()), feeSource: built.feeSource }
  } catch (cause) {
    throw contradiction(cause)
  }
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

const contradiction = (cause?: unknown) => new Refusal('unavailable', 'the RPC contradicts itself', { cause })
