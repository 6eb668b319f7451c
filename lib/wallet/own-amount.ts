import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { CompactEncrypt, compactDecrypt } from 'jose'
import type { Holder } from './keys.ts'
import { AMOUNT_DIGITS } from './seal.ts'

/** Whose keys: an account's own. */
type Own = { keys: Pick<Holder['keys'], 'vk'> }

/** The payout that an amount is for: it can't be moved to another. */
export interface OwnAmountBinding {
  batch: string
  contractor: string
}

/**
 * Encrypts an amount (base units, at most 16 digits) for the account alone, as a payout's `encryptedAmount`: a compact JWE (`dir`,
 * A256GCM) under a key that follows from the viewing key. Every amount has the same length.
 */
export async function encryptForSelf(
  own: Own,
  { batch, contractor }: OwnAmountBinding,
  amount: bigint,
): Promise<string> {
  const plaintext = amount.toString().padStart(AMOUNT_DIGITS, '0')
  if (amount <= 0n || plaintext.length > AMOUNT_DIGITS) throw new RangeError('the amount cannot be encrypted')
  return await new CompactEncrypt(utf8ToBytes(plaintext))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', batch, contractor })
    .encrypt(keyOf(own))
}

/** The amount of `encryptForSelf`; undefined for another text, another account's, or one of another payout. */
export async function decryptForSelf(
  own: Own,
  { batch, contractor }: OwnAmountBinding,
  encryptedAmount: string,
): Promise<bigint | undefined> {
  const algorithms = { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] }
  const opened = await compactDecrypt(encryptedAmount, keyOf(own), algorithms).catch(() => undefined)
  if (opened?.protectedHeader.batch !== batch || opened.protectedHeader.contractor !== contractor) return undefined
  return BigInt(new TextDecoder().decode(opened.plaintext))
}

const keyOf = ({ keys }: Own) =>
  hkdf(sha256, utf8ToBytes(keys.vk.toString(16)), undefined, utf8ToBytes('own amounts of payouts'), 32)
