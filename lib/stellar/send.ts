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

/** Codes that a node also gives when another envelope with the same inner transaction has been there before. */
const CONTESTED = new Set(['txBadSeq', 'txInsufficientFee'])

/** Gives `envelope` (base64 XDR) to the network. Never throws: no answer is an answer that leaves all open. */
export async function send(network: Network, envelope: string): Promise<Sent> {
  try {
    const answer = await network.call('sendTransaction', { transaction: envelope }, ANSWER)
    const { latestLedger } = answer
    if (answer.status !== 'ERROR' || !answer.errorResultXdr) return { kind: 'unknown', latestLedger }
    const resultCode = resultCodeOf(decodeResult(answer.errorResultXdr))
    // Its minTime is now, but the last ledger's clock is a few seconds behind: the next ledger takes it.
    if (resultCode === 'txTooEarly') return { kind: 'unknown', latestLedger }
    return { kind: 'error', latestLedger, resultCode, contested: CONTESTED.has(resultCode) }
  } catch (error) {
    log('error', 'send', { failure: describeFailure(error) })
    return { kind: 'unknown' }
  }
}
