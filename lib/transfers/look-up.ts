import type { ReadAccount } from '#lib/stellar/account.ts'
import { type DecodedEnvelope, decodeEnvelope } from '#lib/stellar/envelope.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import {
  contractErrorOf,
  decodeResult,
  type FoundTransaction,
  innerResultOf,
  lookUp,
  resultCodeOf,
} from '#lib/stellar/transaction.ts'
import { type Decision, decide, type HashAnswer, type LedgerRecord } from './decide.ts'
import { askUntilRecent, type Recency } from './recency.ts'
import type { Envelope, RecordedTransfer } from './rows.ts'

/** What a lookup needs. */
export interface LookUpContext {
  network: Network
  /** reads accounts; combines concurrent reads into one call */
  readAccount: ReadAccount
  recency: Recency
}

/** The last max time of a transfer, unix seconds. */
export const maxTimeOf = (envelopes: readonly Pick<Envelope, 'maxTime'>[]): number =>
  Math.max(...envelopes.map(({ maxTime }) => maxTime))

/** The hashes under which the ledger may file an envelope. */
export const hashesOf = ({ innerHash, outerHash }: Pick<Envelope, 'innerHash' | 'outerHash'>): string[] =>
  outerHash === null ? [innerHash] : [outerHash, innerHash]

/**
 * Looks an open transfer up by its hashes. Resolves to the decision, or to the ledger up to which none of its envelopes
 * was applied; `isOver` if every max time has passed.
 * @throws LedgerError `unavailable`
 */
export async function lookUpTransfer(
  context: LookUpContext,
  recorded: RecordedTransfer,
): Promise<Decision | { ledger: number; isOver: boolean }> {
  const answers = await lookUpRivals(context, recorded, await lookUpHashes(context, recorded))
  const { sequenceNumber, recordedLedger } = recorded.transfer
  const maxTime = maxTimeOf(recorded.envelopes)
  const ledger = Math.min(...answers.map(({ latestLedger }) => latestLedger))
  const isOver = answers.every(({ closedAt }) => closedAt > maxTime)
  return decide({ sequenceNumber, recordedLedger, maxTime, answers }) ?? { ledger, isOver }
}

/**
 * Looks an open transfer up by its account and its hashes. The account is read first: if it shows the number as used,
 * later responses must include the transaction that used it, if that was one of these.
 * @throws LedgerError `unavailable`
 */
export async function lookUpWithAccount(
  context: LookUpContext,
  recorded: RecordedTransfer,
): Promise<Decision | undefined> {
  const { account: address, sequenceNumber, recordedLedger } = recorded.transfer
  const { account, latestLedger } = await context.readAccount(address)
  const answers = await lookUpHashes(context, recorded, latestLedger)
  const maxTime = maxTimeOf(recorded.envelopes)
  const decideBy = (number: bigint | undefined, ledger: number) =>
    decide({ sequenceNumber, recordedLedger, maxTime, answers, account: { number, latestLedger: ledger } })
  const decision = decideBy(account?.seqNum, latestLedger)
  if (decision || !answers.every(({ closedAt }) => closedAt > maxTime)) return decision
  // If history is lost, the account must be read as of a ledger after every max time, and ledgers close in the meantime.
  const later = await context.readAccount(address)
  return decideBy(later.account?.seqNum, later.latestLedger)
}

/**
 * Looks a transfer up by every hash of its envelopes: the outer ones, and the inner ones, since a client may have
 * submitted its own transaction.
 * @param atLeast a ledger; lookups are repeated if the response is older or its history doesn't reach back far enough
 * @throws LedgerError `unavailable`
 */
export function lookUpHashes(
  { network, recency }: Pick<LookUpContext, 'network' | 'recency'>,
  { transfer, envelopes }: RecordedTransfer,
  atLeast?: number,
): Promise<HashAnswer[]> {
  const { sponsor, recordedLedger } = transfer
  const ask = async (hash: string, innerHash: string): Promise<HashAnswer> => {
    const { response } = await askUntilRecent(
      () => lookUp(network, hash),
      ({ status, latestLedger, oldestLedger }) =>
        status !== 'NOT_FOUND' || atLeast === undefined || (latestLedger >= atLeast && oldestLedger <= recordedLedger),
    )
    const { latestLedger, latestLedgerCloseTime: closedAt, oldestLedger } = response
    recency.observe(latestLedger, closedAt)
    const { passphrase } = network
    const found = response.status === 'NOT_FOUND' ? undefined : readRecord(response, { innerHash, sponsor, passphrase })
    return { latestLedger, closedAt, oldestLedger, found }
  }
  return Promise.all(envelopes.flatMap((envelope) => hashesOf(envelope).map((hash) => ask(hash, envelope.innerHash))))
}

/**
 * If one envelope was applied, a rival may have failed at the sponsor's cost. A lagging node doesn't show that yet, so
 * the lookup is repeated.
 */
async function lookUpRivals(
  context: LookUpContext,
  recorded: RecordedTransfer,
  answers: HashAnswer[],
): Promise<HashAnswer[]> {
  const applied = answers.find(({ found }) => found?.consumed)?.found
  if (!applied || isAlone(recorded, applied)) return answers
  const isBehind = answers.some(({ latestLedger }) => latestLedger < applied.ledger)
  return isBehind ? await lookUpHashes(context, recorded, applied.ledger) : answers
}

/** True if no other envelope can have cost anything: there is only one, and it was applied as the service submitted it. */
export const isAlone = ({ envelopes: [first, ...rivals] }: RecordedTransfer, { hash }: LedgerRecord): boolean =>
  first !== undefined && rivals.length === 0 && hashesOf(first)[0] === hash

/**
 * Looks up a transaction that its client may have submitted. `absent`: up to ledger `asOf`, on which a refusal is based,
 * it didn't succeed. `unsure`: no response was recent enough to tell, and a refusal could lead to a second payment.
 * @param isPresent whether a ledger that closed then (unix seconds) is recent enough
 * @throws LedgerError `unavailable`
 */
export async function lookUpOwnTransaction(
  { network, recency }: Pick<LookUpContext, 'network' | 'recency'>,
  { innerHash, sponsor }: Omit<Expected, 'passphrase'>,
  { asOf, isPresent }: { asOf: number; isPresent: (closedAt: number) => boolean },
): Promise<LedgerRecord | 'absent' | 'unsure'> {
  const { response, isRecent } = await askUntilRecent(
    () => lookUp(network, innerHash),
    ({ status, latestLedger, latestLedgerCloseTime }) =>
      status !== 'NOT_FOUND' || (latestLedger >= asOf && isPresent(latestLedgerCloseTime)),
  )
  recency.observe(response.latestLedger, response.latestLedgerCloseTime)
  if (response.status === 'NOT_FOUND') return isRecent ? 'absent' : 'unsure'
  const record = readRecord(response, { innerHash, sponsor, passphrase: network.passphrase })
  return record.succeeded ? record : 'absent'
}

/** Failures that the network finds before it uses up the sequence number, also while it applies a transaction. */
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
export function readRecord(found: FoundTransaction, { innerHash, sponsor, passphrase }: Expected): LedgerRecord {
  const { hashHex, feeBump } = decode(found.envelopeXdr, passphrase)
  const result = decodeResult(found.resultXdr)
  const inner = innerResultOf(result)
  const succeeded = found.status === 'SUCCESS'
  const resultCode = resultCodeOf(result)
  const consistent =
    hashHex === innerHash &&
    succeeded === (result.result.type === 'txSuccess' || result.result.type === 'txFeeBumpInnerSuccess') &&
    (inner === undefined || inner.transactionHash.toString() === innerHash)
  if (!consistent) throw contradiction()
  const ownBump = feeBump?.feeSource === sponsor ? feeBump : undefined
  const isOwnDeposit = feeBump === undefined && sponsor === null
  return {
    succeeded,
    consumed: succeeded || !NOT_CONSUMED.has(resultCode),
    applied: innerHash,
    hash: ownBump?.hashHex ?? innerHash,
    ledger: found.ledger,
    closedAt: found.createdAt,
    feeCharged: ownBump || isOwnDeposit ? result.feeCharged : 0n,
    resultCode,
    contractError: succeeded ? null : contractErrorOf(found.diagnosticEventsXdr ?? []),
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
