import { setImmediate } from 'node:timers/promises'
import type { Line } from '#lib/transfers/line.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { isMarkedFor, markedSource, markKeyOf } from '#lib/wallet/payment-mark.ts'
import type { Allowance } from '#lib/wallet/spending.ts'
import type { TokenEvent } from './channel-events.ts'
import type { Channel } from './relay.ts'

/** What a payment pays: a payout, or a line of a job. */
export const purposeOf = ({ payout, job, position }: Pick<Line, 'payout' | 'job' | 'position'>): string =>
  payout ?? `${job}/${position}`

/**
 * A deployment whose proofs have salts that are marked with a payment's purpose, for the channel and, from the escrow of a
 * delegation, for its owner.
 */
export function markSalts(deployment: Deployment, { keys }: Channel, line: Line, allowance?: Allowance): Deployment {
  const delegation = allowance && markKeyOf(allowance.delegationKey)
  return { ...deployment, random: markedSource({ signer: markKeyOf(keys.vk), delegation }, purposeOf(line)) }
}

/** After this many marks, other work of the process gets a turn. */
const PART = 500

/**
 * Finds the first candidate whose payment is marked with its purpose, by the mark key of the channel. Callers also have to compare
 * the payee, which a mark does not contain.
 */
export async function findMarked<Candidate>(
  candidates: Iterable<Candidate>,
  marked: (candidate: Candidate) => { markKey: Uint8Array | undefined; payment: Marked; purpose: string },
): Promise<Candidate | undefined> {
  let read = 0
  for (const candidate of candidates) {
    const { markKey, payment, purpose } = marked(candidate)
    if (markKey && isMarked(markKey, payment, purpose)) return candidate
    read += 1
    if (read % PART === 0) await setImmediate()
  }
  return undefined
}

/** The parts of a payment by which its mark is read. */
type Marked = Pick<TokenEvent, 'salt' | 'from' | 'channel'>

/** Whether a channel's payment was made for this purpose, by the channel's mark key. */
export const isMarked = (markKey: Uint8Array, { salt, from, channel }: Marked, purpose: string): boolean =>
  isMarkedFor({ signer: markKey }, salt, purpose, from !== channel)
