import { createHmac, randomBytes } from 'node:crypto'
import { type Fields, saltOf } from '#lib/wallet/decryption.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { encodeField } from '#lib/wallet/grumpkin.ts'
import type { Item } from './item-row.ts'
import type { Channel } from './relay.ts'

/** Separates these hashes from all others of the channel's viewing key. */
const DOMAIN = 'payroll/payment-mark/v1'

/** A salt has 32 bytes; the first 16 are random. */
const RANDOM_BYTES = 16

/** A field element has 254 bits. */
const TOP_BITS = 0b0011_1111

/** What a payment pays: a payout, or an item of a job. */
export const purposeOf = ({ payout, job, position }: Pick<Item, 'payout' | 'job' | 'position'>): string =>
  payout ?? `${job}/${position}`

/**
 * A deployment whose proofs have salts that are marked with a payment's purpose: 126 random bits, then 128 bits of
 * HMAC-SHA-256 over purpose and random bits, with the channel's viewing secret. Every salt is new, and random to anyone
 * without that secret. With it, the ledger itself shows for which payout a payment was made, even if a database was
 * lost.
 */
export function markSalts(deployment: Deployment, channel: Channel, item: Item): Deployment {
  const random = (size: number): Uint8Array => {
    const nonce = randomBytes(RANDOM_BYTES)
    nonce[0] = (nonce[0] ?? 0) & TOP_BITS
    return Buffer.concat([nonce, markOf(channel, purposeOf(item), nonce)]).subarray(0, size)
  }
  return { ...deployment, random }
}

/** Whether a channel's payment with these fields was made for this purpose. */
export function isMarked(channel: Channel, fields: Fields, purpose: string): boolean {
  const salt = encodeField(saltOf(fields))
  return markOf(channel, purpose, salt.subarray(0, RANDOM_BYTES)).equals(salt.subarray(RANDOM_BYTES))
}

const markOf = ({ keys }: Channel, purpose: string, nonce: Uint8Array): Buffer =>
  createHmac('sha256', encodeField(keys.vk))
    .update(`${DOMAIN}\n${purpose}\n`)
    .update(nonce)
    .digest()
    .subarray(0, 32 - RANDOM_BYTES)
