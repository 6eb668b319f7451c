import { p256 } from '@noble/curves/nist.js'
import { bytesToNumberBE, numberToBytesBE } from '@noble/curves/utils.js'
import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { base64url, type JWK } from 'jose'
import type { ConfidentialKeys } from './keys.ts'
import { AMOUNT_DIGITS, keyIdOf, readSeal, type SealBinding, sealPayout } from './seal.ts'

/**
 * The ephemeral private key (P-256) of one seal of an account. It follows from the viewing key, so that the account can show the
 * amount in its own seal to another signer without having stored anything.
 * @param kid names the relays' key
 * @param nonce of the seal's header: each seal has another, so that its key opens no other one
 */
export function ownSealKey(keys: Pick<ConfidentialKeys, 'vk'>, kid: string, binding: SealBinding, nonce: string): JWK {
  const { batch, contractor, spender } = binding
  const context = ['ephemeral key of a seal', kid, batch, contractor, spender, nonce].join('\n')
  return privateKey(utf8ToBytes(keys.vk.toString(16)), context)
}

/** A P-256 private key from a secret and its purpose. */
export function privateKey(root: Uint8Array, context: string): JWK {
  const { ORDER } = p256.Point.Fn
  const d = (bytesToNumberBE(hkdf(sha512, root, undefined, utf8ToBytes(context), 48)) % (ORDER - 1n)) + 1n
  return jwkOf(numberToBytesBE(d, 32))
}

/** A P-256 private key with its public point. */
function jwkOf(secret: Uint8Array): JWK {
  const point = p256.getPublicKey(secret, false)
  const [x, y] = [point.subarray(1, 33), point.subarray(33)]
  return { kty: 'EC', crv: 'P-256', x: base64url.encode(x), y: base64url.encode(y), d: base64url.encode(secret) }
}

/** Seals an amount as `sealPayout` does, so that the account can open the seal again. */
export async function sealOwnPayout(
  { keys }: { keys: Pick<ConfidentialKeys, 'vk'> },
  key: JWK,
  binding: SealBinding,
  amount: bigint,
): Promise<string> {
  const nonce = base64url.encode(crypto.getRandomValues(new Uint8Array(16)))
  const ephemeral = ownSealKey(keys, await keyIdOf(key), binding, nonce)
  return await sealPayout(key, binding, amount, { nonce, ephemeral })
}

/**
 * Opens a seal with its ephemeral private key and the relays' public key (RFC 7518 §4.6), as the relay opens it with its own. The
 * result is the amount that the relay reads, because the signature covers seal, header and tag. (A content key alone would prove nothing: GCM does
 * not commit to its key.)
 * @param secret of `ownSealKey`, base64url
 * @returns base units; undefined if the key or the binding is another one, or the seal holds no amount
 */
export async function openOwnSeal(
  relayKey: JWK,
  binding: SealBinding,
  { encryptedAmount, secret }: { encryptedAmount: string; secret: string },
): Promise<bigint | undefined> {
  const header = readSeal(encryptedAmount)
  const [first = '', , iv = '', ciphertext = '', tag = ''] = encryptedAmount.split('.')
  const isBound =
    header?.kid === (await keyIdOf(relayKey)) &&
    header.batch === binding.batch &&
    header.contractor === binding.contractor &&
    header.spender === binding.spender
  if (!isBound) return undefined
  try {
    const { epk, apu, apv } = JSON.parse(new TextDecoder().decode(base64url.decode(first)))
    const own = jwkOf(base64url.decode(secret))
    if (epk?.x !== own.x || epk?.y !== own.y || apu !== undefined || apv !== undefined) return undefined
    const point = concatBytes(Uint8Array.of(4), base64url.decode(relayKey.x ?? ''), base64url.decode(relayKey.y ?? ''))
    const shared = p256.getSharedSecret(base64url.decode(secret), point).subarray(1)
    const key = await crypto.subtle.importKey('raw', contentKey(shared) as BufferSource, 'AES-GCM', false, ['decrypt'])
    const given = { name: 'AES-GCM', iv: base64url.decode(iv), additionalData: new TextEncoder().encode(first) }
    const sealed = concatBytes(base64url.decode(ciphertext), base64url.decode(tag))
    const text = new TextDecoder().decode(
      await crypto.subtle.decrypt(given as AesGcmParams, key, sealed as BufferSource),
    )
    return text.length === AMOUNT_DIGITS && /^\d+$/.test(text) && BigInt(text) > 0n ? BigInt(text) : undefined
  } catch {
    return undefined
  }
}

/** The Concat KDF of direct key agreement for A256GCM, with SHA-256 (RFC 7518 §4.6.2). */
function contentKey(shared: Uint8Array): Uint8Array {
  const withLength = (text: string) => concatBytes(numberToBytesBE(text.length, 4), utf8ToBytes(text))
  const parties = concatBytes(withLength(''), withLength(''))
  const info = concatBytes(withLength('A256GCM'), parties, numberToBytesBE(256, 4))
  return sha256(concatBytes(numberToBytesBE(1, 4), shared, info))
}
