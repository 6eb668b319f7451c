import { z } from 'zod'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Network } from './network.ts'
import { decodeResult, resultCodeOf } from './result.ts'

/**
 * What came of giving the network an envelope. PENDING, DUPLICATE, TRY_AGAIN_LATER and silence all say the same:
 * it may be on its way. Only ERROR says that this node will not have it.
 */
export type Sent =
  | { kind: 'unknown'; latestLedger?: number }
  | { kind: 'error'; latestLedger?: number; resultCode: string; contested: boolean }

const ANSWER = z.object({
  status: z.enum(['PENDING', 'DUPLICATE', 'TRY_AGAIN_LATER', 'ERROR']),
  latestLedger: z.number().int(),
  errorResultXdr: z.string().optional(),
})

/** The code that a node also gives when another envelope with the same inner transaction has been there before. */
const CONTESTED = 'txBadSeq'

/**
 * Codes of what a later ledger may take all the same. Too early: a minTime is now, but the last ledger's clock is a few
 * seconds behind. Too low a fee: the queue is full of others who offer as much, or another envelope with this number waits.
 */
const FOR_NOW = new Set(['txTooEarly', 'txInsufficientFee'])

/** Gives `envelope` (base64 XDR) to the network. Never throws: no answer is an answer that leaves all open. */
export async function send(network: Network, envelope: string): Promise<Sent> {
  try {
    const answer = await network.call('sendTransaction', { transaction: envelope }, ANSWER)
    const { latestLedger } = answer
    if (answer.status !== 'ERROR' || !answer.errorResultXdr) return { kind: 'unknown', latestLedger }
    const resultCode = resultCodeOf(decodeResult(answer.errorResultXdr))
    if (FOR_NOW.has(resultCode)) return { kind: 'unknown', latestLedger }
    return { kind: 'error', latestLedger, resultCode, contested: resultCode === CONTESTED }
  } catch (error) {
    log('error', 'send', { failure: describeFailure(error) })
    return { kind: 'unknown' }
  }
}
