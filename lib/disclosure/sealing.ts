import { AMOUNT_LIMIT, isKey } from '#lib/wallet/commitment.ts'
import { mask, sharedSecret, unmask } from '#lib/wallet/encryption.ts'
import { decodeField, encodePoint, H, isCanonical, multiply } from '#lib/wallet/grumpkin.ts'
import { hash, type TAG } from '#lib/wallet/poseidon.ts'
import { DisclosureError } from './disclosure-error.ts'

/** A value that only the requester can read: R_d = r_d · H (64 bytes), and the value plus a mask (32 bytes). */
export interface Sealed {
  key: Uint8Array
  value: Uint8Array
}

/** A single payment and a balance have a different tag from a total, so that one cannot pass for the other. */
export type SealTag = typeof TAG.disclosedValue | typeof TAG.disclosedTotal

/** The requester's public key P_R (64 bytes), and the nonce of its request (32 bytes). */
export interface Addressee {
  key: Uint8Array
  nonce: Uint8Array
}

/** @param secret r_d, random and not 0 */
export function seal(tag: SealTag, value: bigint, { key, nonce }: Addressee, secret: bigint): Sealed {
  const hide = hash(tag, sharedSecret(secret, key), decodeField(nonce))
  return { key: encodePoint(multiply(H, secret)), value: mask(value, hide) }
}

/**
 * The value that was sealed to the holder of `secret` (r_R).
 * @throws DisclosureError `cannot-decrypt`
 */
export function unseal(tag: SealTag, sealed: Sealed, secret: bigint, nonce: Uint8Array): bigint {
  if (!isKey(sealed.key) || !isCanonical(sealed.value)) {
    throw new DisclosureError('cannot-decrypt', 'the sealed value has no valid key')
  }
  const value = unmask(sealed.value, hash(tag, sharedSecret(secret, sealed.key), decodeField(nonce)))
  if (value >= AMOUNT_LIMIT) throw new DisclosureError('cannot-decrypt', 'the sealed value is out of range')
  return value
}
