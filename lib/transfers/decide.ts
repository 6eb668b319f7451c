import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { type DecodedEnvelope, decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import {
  contractErrorOf,
  decodeResult,
  type FoundTransaction,
  innerResultOf,
  resultCodeOf,
} from '#lib/stellar/transaction.ts'

/** The ledger's record of an envelope. */
export interface LedgerRecord {
  succeeded: boolean
  /** whether it used up the account's sequence number; a transaction that did not may leave room for a rival */
  consumed: boolean
  /** inner hash of the applied envelope */
  applied: string
  /** the applied hash: that of the service's fee bump, or the inner one */
  hash: string
  /** hash of the fee bump that the ledger applied, also of one that another account paid for; null without one */
  outerHash: string | null
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

/** Failures that the network finds before it uses up the sequence number, even while it applies a transaction. */
export const NOT_CONSUMED = new Set([
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

/** A record must agree with these. `sponsor` pays the fee bumps of the service; null for a deposit, which pays itself. */
export interface Expected {
  innerHash: string
  sponsor: string | null
  passphrase: string
}

/**
 * Reads the record found under a hash of an envelope, outer or inner.
 * @throws LedgerError `unavailable` if the response contradicts itself and is therefore unusable
 */
export function readRecord(transaction: FoundTransaction, { innerHash, sponsor, passphrase }: Expected): LedgerRecord {
  const { hashHex, feeBump } = decode(transaction.envelopeXdr, passphrase)
  const result = decodeResult(transaction.resultXdr)
  const inner = innerResultOf(result)
  const succeeded = transaction.status === 'SUCCESS'
  const resultCode = resultCodeOf(result)
  const isSuccess = result.result.type === 'txSuccess' || result.result.type === 'txFeeBumpInnerSuccess'
  const isOfInner = inner === undefined || inner.transactionHash.toString() === innerHash
  if (hashHex !== innerHash || succeeded !== isSuccess || !isOfInner) throw contradiction()
  const ownBump = feeBump?.feeSource === sponsor ? feeBump : undefined
  const isOwnDeposit = feeBump === undefined && sponsor === null
  return {
    succeeded,
    consumed: succeeded || !NOT_CONSUMED.has(resultCode),
    applied: innerHash,
    hash: ownBump?.hashHex ?? innerHash,
    outerHash: feeBump?.hashHex ?? null,
    ledger: transaction.ledger,
    closedAt: transaction.createdAt,
    feeCharged: ownBump || isOwnDeposit ? result.feeCharged : 0n,
    resultCode,
    contractError: succeeded ? null : contractErrorOf(transaction.diagnosticEventsXdr ?? []),
  }
}

function decode(encoded: string, passphrase: string): DecodedEnvelope {
  try {
    return decodeEnvelope(encoded, passphrase)
  } catch (cause) {
    throw contradiction(cause)
  }
}

const contradiction = (cause?: unknown) => new LedgerError('unavailable', 'the RPC contradicts itself', { cause })

/** One response of the RPC for one hash, with the range of ledgers that it covers. */
export interface HashAnswer {
  /** undefined: NOT_FOUND */
  record: LedgerRecord | undefined
  latestLedger: number
  /** when the latest ledger closed, unix seconds */
  closedAt: number
  oldestLedger: number
}

/** Everything known about an open transfer. */
export interface Evidence {
  sequenceNumber: bigint
  /** lowest ledger of the responses that showed the number unused */
  recordedLedger: number
  /** the latest maxTime of its envelopes, unix seconds */
  maxTime: number
  /** one response for each hash of each envelope, outer and inner */
  answers: readonly HashAnswer[]
  /** the account's last used sequence number, undefined if the account doesn't exist, and the ledger of that response */
  account?: { number: bigint | undefined; latestLedger: number }
}

export type Decision =
  | { status: 'succeeded' | 'failed'; record: LedgerRecord; feeCharged: bigint }
  | { status: 'expired'; resultCode?: 'txBadSeq' }
  | { status: 'unknown' }

/**
 * Decides a transfer by the ledger alone: not by the service's clock, a timeout, or an error at submission. Undefined: it
 * stays open. The rules, in order:
 *
 * 1. A hash of one of its envelopes is found: succeeded or failed.
 * 2. The account has used the number, and for each hash a response at or after the account's ledger, whose history
 *    reaches back to the recorded ledger, is NOT_FOUND: expired, with txBadSeq, since a transaction unknown to this
 *    service was applied.
 * 3. For each hash a response whose latest ledger closed after every maxTime (CAP-21: no later ledger can include it),
 *    and whose history reaches back, is NOT_FOUND: expired.
 * 4. Every maxTime has passed and history no longer reaches back: expired if the account's number, in a response whose
 *    ledger closed after them, is still below; unknown otherwise. An account that no longer exists proves nothing.
 *
 * A record that failed without using up the number leaves room for a rival, so it is treated like NOT_FOUND, and changes
 * the outcome `expired` to `failed`.
 */
export function decide({ sequenceNumber, recordedLedger, maxTime, answers, account }: Evidence): Decision | undefined {
  // The RPC files a fee bump under both its hashes: that is one record.
  const records = [...new Map(answers.flatMap(({ record }) => (record ? [[record.hash, record]] : []))).values()]
  const applied = records.find(({ consumed }) => consumed)
  if (applied) return { status: applied.succeeded ? 'succeeded' : 'failed', ...settled(applied, records) }
  if (answers.length === 0) return undefined
  const [failed] = records
  const ended: Decision = failed ? { status: 'failed', ...settled(failed, records) } : { status: 'expired' }
  // A network that was restored under lower numbers has a ledger with this number, but not this ledger.
  const reachesBack = answers.every((one) => one.oldestLedger <= recordedLedger && recordedLedger <= one.latestLedger)
  const isUsed = account?.number !== undefined && account.number >= sequenceNumber
  if (isUsed && reachesBack && answers.every(({ latestLedger }) => latestLedger >= account.latestLedger)) {
    return failed ? ended : { status: 'expired', resultCode: 'txBadSeq' }
  }
  const isOver = answers.every(({ closedAt }) => closedAt > maxTime)
  if (!isOver) return undefined
  const overLedger = Math.min(...answers.map(({ latestLedger }) => latestLedger))
  // What used the number shows in a later response, or an account of an earlier ledger does not show it yet.
  if (reachesBack && account && (isUsed || account.latestLedger < overLedger)) return undefined
  if (reachesBack) return ended
  if (!account || account.latestLedger < overLedger) return undefined
  return account.number !== undefined && !isUsed ? ended : { status: 'unknown' }
}

function settled(record: LedgerRecord, records: readonly LedgerRecord[]) {
  return { record, feeCharged: records.reduce((sum, { feeCharged }) => sum + feeCharged, 0n) }
}
