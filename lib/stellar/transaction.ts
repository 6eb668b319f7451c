import { xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import { LedgerError } from './ledger-error.ts'
import type { Network } from './network.ts'
import { LEDGER } from './view.ts'

/**
 * The network's response to an envelope. After PENDING, DUPLICATE, TRY_AGAIN_LATER or no response it may still be applied.
 * Only ERROR means that this node rejects it.
 */
export type Sent = { latestLedger?: number; latestLedgerCloseTime?: number } & (
  | { kind: 'unknown' }
  | { kind: 'error'; resultCode: string }
)

const ANSWER = z.object({
  status: z.enum(['PENDING', 'DUPLICATE', 'TRY_AGAIN_LATER', 'ERROR']),
  latestLedger: LEDGER,
  latestLedgerCloseTime: z.coerce.number().int().optional(),
  errorResultXdr: z.string().optional(),
})

/** True for the code that a node also returns if it already has another envelope with the same inner transaction. */
export const isContested = (resultCode: string): boolean => resultCode === 'txBadSeq'

/**
 * Codes after which a later ledger may still include the envelope. Too early: minTime is now, but the last ledger's clock is
 * a few seconds behind. Fee too low: the queue is full of equal bids, or has another envelope with this sequence number.
 */
const FOR_NOW = new Set(['txTooEarly', 'txInsufficientFee'])

/** Sends `envelope` (base64 XDR) to the network. Never throws: without a response the outcome is `unknown`. */
export async function send(network: Network, envelope: string): Promise<Sent> {
  try {
    const answer = await network.call('sendTransaction', { transaction: envelope }, ANSWER)
    const { latestLedger, latestLedgerCloseTime } = answer
    const reading = { latestLedger, ...(latestLedgerCloseTime !== undefined && { latestLedgerCloseTime }) }
    if (answer.status !== 'ERROR' || !answer.errorResultXdr) return { kind: 'unknown', ...reading }
    const resultCode = resultCodeOf(decodeResult(answer.errorResultXdr))
    if (FOR_NOW.has(resultCode)) return { kind: 'unknown', ...reading }
    return { kind: 'error', ...reading, resultCode }
  } catch (error) {
    log('error', 'send', { failure: describeFailure(error) })
    return { kind: 'unknown' }
  }
}

const seconds = z.union([z.number().int(), z.string().regex(/^\d+$/)]).transform(Number)

const RANGE = { latestLedger: LEDGER, latestLedgerCloseTime: seconds, oldestLedger: LEDGER }

/** An applied transaction in the RPC's response. `createdAt` is when its ledger closed, unix seconds. */
export const FOUND = z.object({
  status: z.enum(['SUCCESS', 'FAILED']),
  ledger: LEDGER,
  createdAt: seconds,
  envelopeXdr: z.string(),
  resultXdr: z.string(),
  diagnosticEventsXdr: z.array(z.string()).nullish(),
})
export type FoundTransaction = z.output<typeof FOUND>

/** The response to a lookup by hash: the range of the node's history, and the transaction if it was found. */
const LOOKUP = z.discriminatedUnion('status', [
  z.object({ status: z.literal('NOT_FOUND'), ...RANGE }),
  FOUND.extend(RANGE),
])
export type Lookup = z.output<typeof LOOKUP>

/** @throws LedgerError `unavailable` */
export function lookUp(network: Pick<Network, 'call'>, hash: string): Promise<Lookup> {
  return network.call('getTransaction', { hash }, LOOKUP)
}

/** @throws LedgerError `unavailable` for a result that cannot be decoded */
export function decodeResult(resultXdr: string): xdr.TransactionResult {
  try {
    return xdr.TransactionResult.fromXdr(resultXdr, 'base64')
  } catch (cause) {
    throw new LedgerError('unavailable', 'the RPC returned a result that cannot be read', { cause })
  }
}

/** The result of the transaction inside a fee bump. */
export function innerResultOf({ result }: xdr.TransactionResult): xdr.InnerTransactionResultPair | undefined {
  return 'innerResultPair' in result ? result.innerResultPair : undefined
}

/** The result code: txSuccess, txFailed, txBadSeq … For a fee bump it is the inner transaction's. */
export function resultCodeOf(result: xdr.TransactionResult): string {
  return innerResultOf(result)?.result.result.type ?? result.result.type
}

/**
 * The last contract error among diagnostic events, whose topics are ("error", Error(Contract, #n)): the caller may have
 * handled an earlier one. It is for information only, so events that cannot be decoded are skipped.
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
