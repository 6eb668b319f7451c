import { equalBytes } from '@noble/curves/utils.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { encodeField } from './grumpkin.ts'
import type { RandomSource } from './keys.ts'

/** Separates this key from all others of a viewing key. */
const DOMAIN = 'payroll/payment-mark/v1'

/** A salt has 32 bytes: 16 random ones, then the codes. A code of one of two readers has half of the rest. */
const RANDOM_BYTES = 16
const HALF = 8

/** A field element has 254 bits. */
const TOP_BITS = 0b0011_1111

/** The key that marks payments, and reads their marks: 32 bytes. It opens no amount. */
export const markKeyOf = (viewingKey: bigint): Uint8Array => hmac(sha256, encodeField(viewingKey), utf8ToBytes(DOMAIN))

/**
 * The mark keys by which a payment's purpose can be read: that of the account that signs it, and for a payment from a delegation
 * also that of the delegation's viewing key, which the owner can derive.
 */
export interface MarkKeys {
  signer: Uint8Array
  delegation?: Uint8Array | undefined
}

/**
 * A source of salts that are marked with a payment's purpose: 126 random bits, then 128 bits of HMAC-SHA-256 over purpose and
 * random bits, 64 for each of two keys. Every salt is new, and random to anyone without these keys. With one of them, the
 * ledger itself shows what a payment was made for, even if every database was lost.
 */
export function markedSource({ signer, delegation }: MarkKeys, purpose: string): RandomSource {
  return (size) => {
    const nonce = crypto.getRandomValues(new Uint8Array(RANDOM_BYTES))
    nonce[0] = (nonce[0] ?? 0) & TOP_BITS
    const own = codeOf(signer, purpose, nonce)
    const codes = delegation === undefined ? own : concatBytes(half(own), half(codeOf(delegation, purpose, nonce)))
    return concatBytes(nonce, codes).subarray(0, size)
  }
}

/**
 * Whether the payment with this salt (32 bytes) was made for this purpose, by one of its keys. The spender of a delegation has
 * both keys, and may mark any payment: a reader also requires the payee.
 */
export function isMarkedFor(keys: Partial<MarkKeys>, salt: Uint8Array, purpose: string, isDelegated: boolean): boolean {
  const nonce = salt.subarray(0, RANDOM_BYTES)
  const codes = salt.subarray(RANDOM_BYTES)
  const { signer, delegation } = keys
  if (signer !== undefined) {
    const own = codeOf(signer, purpose, nonce)
    return isDelegated ? equalBytes(half(own), half(codes)) : equalBytes(own, codes)
  }
  if (delegation === undefined) return false
  return isDelegated && equalBytes(half(codeOf(delegation, purpose, nonce)), codes.subarray(HALF))
}

const half = (code: Uint8Array): Uint8Array => code.subarray(0, HALF)

const codeOf = (key: Uint8Array, purpose: string, nonce: Uint8Array): Uint8Array =>
  hmac(sha256, key, concatBytes(utf8ToBytes(`${purpose}\n`), nonce)).subarray(0, 2 * HALF)
