import { encodeMuxedAccountToAddress, xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import {
  contractErrorOf,
  decodeResult,
  type FoundTransaction,
  hashTransaction,
  innerResultOf,
  lookUp,
  resultCodeOf,
} from '#lib/stellar/transaction.ts'
import type { HashAnswer, LedgerRecord } from './decide.ts'
import type { Envelope, RecordedTransfer } from './rows.ts'

/**
 * One RPC address may stand for several nodes, some of which lag, so a hash is asked for up to this many times in a
 * row.
 */
export const ASKED_AGAIN = 4

/** The last max time of a transfer, unix seconds. */
export const maxTimeOf = (envelopes: readonly Pick<Envelope, 'maxTime'>[]): number =>
  Math.max(...envelopes.map(({ maxTime }) => maxTime))

/** The hashes under which an envelope can stand on the ledger. */
export const hashesOf = ({ innerHash, outerHash }: Pick<Envelope, 'innerHash' | 'outerHash'>): string[] =>
  outerHash === null ? [innerHash] : [outerHash, innerHash]

/**
 * Looks a transfer up by every hash of its envelopes: the outer ones, and the inner ones, since a client may have sent its
 * own transaction by itself.
 * @param atLeast a ledger; an answer that is older, or whose history does not reach back far enough, is asked for again
 * @throws LedgerError `unavailable`
 */
export function lookUpHashes(
  network: Network,
  { transfer, envelopes }: RecordedTransfer,
  atLeast?: number,
): Promise<HashAnswer[]> {
  const ask = async (hash: string, { innerHash }: Envelope): Promise<HashAnswer> => {
    for (let asked = 1; ; asked += 1) {
      const answer = await lookUp(network, hash)
      const { latestLedger, latestLedgerCloseTime: closedAt, oldestLedger } = answer
      const range = { latestLedger, closedAt, oldestLedger }
      if (answer.status !== 'NOT_FOUND') {
        const { passphrase } = network
        return { ...range, found: readRecord(answer, { innerHash, sponsor: transfer.sponsor, passphrase }) }
      }
      const suffices = atLeast === undefined || (latestLedger >= atLeast && oldestLedger <= transfer.recordedLedger)
      if (suffices || asked === ASKED_AGAIN) return { ...range, found: undefined }
    }
  }
  return Promise.all(envelopes.flatMap((envelope) => hashesOf(envelope).map((hash) => ask(hash, envelope))))
}

const PAGE = z.object({
  transactions: z.array(
    z.object({
      status: z.enum(['SUCCESS', 'FAILED']),
      txHash: z.string(),
      ledger: z.number().int(),
      createdAt: z.number().int(),
      envelopeXdr: z.string(),
      resultXdr: z.string(),
      diagnosticEventsXdr: z.array(z.string()).nullish(),
    }),
  ),
  latestLedger: z.number().int(),
  latestLedgerCloseTimestamp: z.number().int(),
  cursor: z.string().regex(/^\d*$/),
})

/** The most transactions that the RPC puts on a page, and the most pages of one walk. */
const PAGE_LIMIT = 200
const MOST_PAGES = 50

/** The records that a walk over the ledgers found, and how far it got. */
interface Walk {
  /** by transfer; null where the RPC's record cannot be read or contradicts itself */
  records: Map<string, LedgerRecord | null>
  /** the last ledger that was read whole */
  latestLedger: number
  /** unix seconds */
  closedAt: number
}

/**
 * Looks many transfers up at once, in the pages of all transactions since `startLedger`, so that the cost of waiting grows
 * with ledgers and not with transfers. Only transactions with a hash that is sought are decoded, so that one that cannot be
 * decoded spoils nothing.
 * @throws LedgerError `unavailable`, also when `startLedger` is not within the history of the RPC, or its pages have no end
 */
export async function walkLedgers(network: Network, sought: RecordedTransfer[], startLedger: number): Promise<Walk> {
  const byHash = new Map(
    sought.flatMap(({ transfer, envelopes }) =>
      envelopes.flatMap((envelope) => hashesOf(envelope).map((hash) => [hash, { transfer, envelope }] as const)),
    ),
  )
  const records = new Map<string, LedgerRecord | null>()
  let params: Record<string, unknown> = { startLedger, pagination: { limit: PAGE_LIMIT } }
  let last = -1n
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await network.call('getTransactions', params, PAGE)
    for (const transaction of page.transactions) {
      const found = byHash.get(transaction.txHash)
      if (!found) continue
      const { transfer, envelope } = found
      const expected = { innerHash: envelope.innerHash, sponsor: transfer.sponsor, passphrase: network.passphrase }
      const record = tryToRead(transaction, expected)
      const earlier = records.get(transfer.id)
      // Of several records of one transfer the one that used up the number counts.
      if (!earlier?.consumed) records.set(transfer.id, record)
    }
    if (page.transactions.length < PAGE_LIMIT) {
      return { records, latestLedger: page.latestLedger, closedAt: page.latestLedgerCloseTimestamp }
    }
    // A cursor that does not advance would fetch the same page for ever.
    if (BigInt(page.cursor || 0) <= last) throw new LedgerError('unavailable', 'the RPC gives the same page again')
    last = BigInt(page.cursor || 0)
    params = { pagination: { cursor: page.cursor, limit: PAGE_LIMIT } }
  }
  throw new LedgerError('unavailable', 'the pages of the RPC have no end')
}

function tryToRead(found: FoundTransaction, expected: Parameters<typeof readRecord>[1]): LedgerRecord | null {
  try {
    return readRecord(found, expected)
  } catch (error) {
    log('error', 'submission', { hash: expected.innerHash, failure: describeFailure(error) })
    return null
  }
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
 * Reads what was found under a hash of an envelope, outer or inner.
 * @throws LedgerError `unavailable` when the answer contradicts itself: then it is no answer
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
function decodeEnvelope(encoded: string, passphrase: string): { hash: string; innerHash: string; feeSource?: string } {
  const { envelopeTypeTx, envelopeTypeTxFeeBump } = xdr.TransactionSignaturePayloadTaggedTransaction
  const hashOf = (tagged: xdr.TransactionSignaturePayloadTaggedTransaction) =>
    hashTransaction(tagged, passphrase).toString('hex')
  try {
    const envelope = xdr.TransactionEnvelope.fromXdr(encoded, 'base64')
    if (envelope.type === 'envelopeTypeTxV0') throw new Error('an envelope that this service never sends')
    if (envelope.type === 'envelopeTypeTx') {
      const hash = hashOf(envelopeTypeTx(envelope.v1.tx))
      return { hash, innerHash: hash }
    }
    const { tx } = envelope.feeBump
    const innerHash = hashOf(envelopeTypeTx(tx.innerTx.v1.tx))
    return { hash: hashOf(envelopeTypeTxFeeBump(tx)), innerHash, feeSource: encodeMuxedAccountToAddress(tx.feeSource) }
  } catch (cause) {
    throw contradiction(cause)
  }
}

const contradiction = (cause?: unknown) => new LedgerError('unavailable', 'the RPC contradicts itself', { cause })
