import type { Line } from '#lib/transfers/line.ts'
import { saltOf } from '#lib/wallet/decryption.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'
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

/** Whether a channel's payment was made for this purpose, by the channel's mark key. A reader also requires the payee. */
export function isMarked(
  markKey: Uint8Array,
  { fields, from, channel }: Pick<TokenEvent, 'fields' | 'from' | 'channel'>,
  purpose: string,
): boolean {
  return isMarkedFor({ signer: markKey }, encodeField(saltOf(fields)), purpose, from !== channel)
}
