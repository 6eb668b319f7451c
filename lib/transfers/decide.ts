/** The ledger's record of an envelope. */
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

/** One answer of the RPC about one hash, with the range of ledgers that it rests on. */
export interface HashAnswer {
  /** undefined: the answer does not know the hash */
  found: LedgerRecord | undefined
  latestLedger: number
  /** when the latest ledger closed, unix seconds */
  closedAt: number
  oldestLedger: number
}

/** Everything that is known of an open transfer. */
export interface Evidence {
  sequenceNumber: bigint
  /** lowest ledger of the answers that showed the number unused */
  recordedLedger: number
  /** the latest maxTime of its envelopes, unix seconds */
  maxTime: number
  /** one answer for each hash of each envelope, outer and inner */
  answers: readonly HashAnswer[]
  /** the last number that the account has used, undefined if there is no such account, and the ledger of that answer */
  account?: { number: bigint | undefined; latestLedger: number }
}

export type Decision =
  | { status: 'succeeded' | 'failed'; record: LedgerRecord; feeCharged: bigint }
  | { status: 'expired'; resultCode?: 'txBadSeq' }
  | { status: 'unknown' }

/**
 * Decides a transfer by what the ledger says, and by nothing else: no clock of the service, no timeout, no error at
 * submission. Undefined: it stays open. The rules, in their order:
 *
 * 1. A hash of one of its envelopes is found: succeeded or failed.
 * 2. The account has used the number, and each hash is unknown to an answer at or after the account's, whose history
 *    reaches back to the recorded ledger: expired, with txBadSeq, since a transaction unknown to this service was applied.
 * 3. Each hash is unknown to an answer whose latest ledger closed after every maxTime (CAP-21: no later ledger can include
 *    it), and whose history reaches back: expired.
 * 4. Every maxTime has passed and history no longer reaches back: expired if the account's number, in an answer that
 *    closed after them, is still below; unknown otherwise. An account that is gone proves nothing.
 *
 * A record that failed without using up the number leaves room for a rival, so it counts like an answer that does not
 * know the hash, and makes the end `failed` in place of `expired`.
 */
export function decide({ sequenceNumber, recordedLedger, maxTime, answers, account }: Evidence): Decision | undefined {
  const records = distinct(answers.flatMap(({ found }) => found ?? []))
  const applied = records.find(({ consumed }) => consumed)
  if (applied) return { status: applied.succeeded ? 'succeeded' : 'failed', ...settled(applied, records) }
  if (answers.length === 0) return undefined
  const [failed] = records
  const ended: Decision = failed ? { status: 'failed', ...settled(failed, records) } : { status: 'expired' }
  // A network that was restored with lower numbers knows a ledger of this number, and not this ledger.
  const reachesBack = answers.every(
    ({ oldestLedger, latestLedger }) => oldestLedger <= recordedLedger && recordedLedger <= latestLedger,
  )
  const isUsed = account?.number !== undefined && account.number >= sequenceNumber
  if (isUsed && reachesBack && answers.every(({ latestLedger }) => latestLedger >= account.latestLedger)) {
    return failed ? ended : { status: 'expired', resultCode: 'txBadSeq' }
  }
  const isOver = answers.every(({ closedAt }) => closedAt > maxTime)
  if (!isOver) return undefined
  if (reachesBack) return ended
  const overLedger = Math.min(...answers.map(({ latestLedger }) => latestLedger))
  if (!account || account.latestLedger < overLedger) return undefined
  return account.number !== undefined && !isUsed ? ended : { status: 'unknown' }
}

function settled(record: LedgerRecord, records: readonly LedgerRecord[]) {
  return { record, feeCharged: records.reduce((sum, { feeCharged }) => sum + feeCharged, 0n) }
}

/** The RPC files a fee bump under both its hashes: that is one record. */
function distinct(records: readonly LedgerRecord[]): LedgerRecord[] {
  return [...new Map(records.map((record) => [record.hash, record])).values()]
}
