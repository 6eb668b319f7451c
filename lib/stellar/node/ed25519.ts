import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

/** DER around a raw key (RFC 8410): SubjectPublicKeyInfo, and PKCS #8 with the seed. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The order L of the base point, and the field prime p = 2^255 - 19. */
const GROUP_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n
const FIELD_PRIME = 2n ** 255n - 19n

/** y of the two pairs of points of order eight. */
const ORDER_EIGHT_Y = BigInt('0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826')

/** y coordinates of the eight points of small order, without the sign bit: of order 4, 1, 8, 8 and 2. */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  ORDER_EIGHT_Y,
  FIELD_PRIME - ORDER_EIGHT_Y,
  FIELD_PRIME - 1n,
])

const SIGN_BIT = 1n << 255n
/** Clients choose the keys, so the cache is bounded and evicts the oldest. */
const CACHE_SIZE = 1024
const keys = new Map<string, KeyObject>()

/**
 * Verifies `signature` (64 bytes) of `message` by `publicKey` (32 bytes). Never throws: a wrong length or an invalid
 * point is false.
 *
 * OpenSSL's checks differ between versions, so the rules of libsodium (crypto_sign_verify_detached, which stellar-core
 * calls) come first: S below the group order (else a signature has a second form), a canonically encoded public key, and
 * neither the key nor R of small order. It accepts nothing that `Keypair.verify` rejects. Signatures that only this
 * function rejects can only be made deliberately, by the owner of the key.
 */
export function verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false
  if (littleEndian(signature.subarray(32)) >= GROUP_ORDER) return false
  const name = Buffer.from(publicKey.buffer, publicKey.byteOffset, 32).toString('latin1')
  const cached = keys.get(name)
  if (!cached && !isSoundPoint(publicKey)) return false
  if (!isSoundPoint(signature.subarray(0, 32))) return false
  return verify(null, message, cached ?? keep(name, publicKey), signature)
}

/** The signature (64 bytes) of `message` by the 32-byte `seed`, RFC 8032 §5.1.6. */
export function signEd25519(seed: Uint8Array, message: Uint8Array): Uint8Array {
  if (seed.length !== 32) throw new RangeError('an ed25519 seed has 32 bytes')
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })
  return new Uint8Array(sign(null, message, key))
}

/** Canonically encoded and not of small order. The verification itself checks that it is on the curve. */
function isSoundPoint(encoded: Uint8Array): boolean {
  const y = littleEndian(encoded) & ~SIGN_BIT
  return y < FIELD_PRIME && !SMALL_ORDER_Y.has(y)
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
}

function keep(name: string, publicKey: Uint8Array): KeyObject {
  const key = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, publicKey]), format: 'der', type: 'spki' })
  if (keys.size >= CACHE_SIZE) {
    const oldest = keys.keys().next().value
    if (oldest !== undefined) keys.delete(oldest)
  }
  keys.set(name, key)
  return key
}
