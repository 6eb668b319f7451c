import { Field } from '@noble/curves/abstract/modular.js'
import { type WeierstrassPoint, weierstrass } from '@noble/curves/abstract/weierstrass.js'
import { bytesToNumberBE, numberToBytesBE } from '@noble/curves/utils.js'
import { WalletError } from './wallet-error.ts'

/** Modulus of the coordinates: the scalar field of BN254, in which Poseidon2 and the circuits work. */
export const FIELD = 0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001n

/** Order of the group, hence the modulus of scalars. Prime, cofactor 1: every point of the curve is in the group. */
export const ORDER = 0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47n

/** A point of Grumpkin, y² = x³ − 17; compare with `equals`, never with `===`. */
export type Point = WeierstrassPoint<bigint>

const Curve = weierstrass(
  {
    p: FIELD,
    n: ORDER,
    h: 1n,
    a: 0n,
    b: FIELD - 17n,
    Gx: 0x083e7911d835097629f0067531fc15cafd79a89beecb39903f69572c636f4a5an,
    Gy: 0x1a7f5efaad7f315c25a918f30cc8d7333fccab7ad7c90f14de81bcc528f9935dn,
  },
  { allowInfinityPoint: true },
)

/** The point at infinity: the commitment to nothing. */
export const IDENTITY: Point = Curve.ZERO

/** The generator for amounts. */
export const G: Point = Curve.BASE

/** Generator of blinding and of public keys; its logarithm to base G is unknown. */
export const H: Point = Curve.fromAffine({
  x: 0x054aa86a73cb8a34525e5bbed6e43ba1198e860f5f3950268f71df4591bde402n,
  y: 0x209dcfbf2cfb57f9f6046f44d71ac6faf87254afc7407c04eb621a6287cac126n,
})

// Both are multiplied in every call. The tables are filled at the first use, so that merely importing costs nothing.
G.precompute(8)
H.precompute(8)

/** `scalar · point`, in time that does not depend on the scalar; the scalar is taken modulo ORDER, 0 gives the identity. */
export function multiply(point: Point, scalar: bigint): Point {
  const reduced = ((scalar % ORDER) + ORDER) % ORDER
  return reduced === 0n || point.is0() ? IDENTITY : point.multiply(reduced)
}

export const add = (left: Point, right: Point): Point => left.add(right)

/** The 32 bytes, big-endian, of a non-negative integer below 2^256. */
export function encodeField(value: bigint): Uint8Array {
  return numberToBytesBE(value, 32)
}

const coordinates = Field(FIELD)

/** One of the two points with this x, which are each other's negatives. WalletError `malformed` if there is none. */
export function liftX(x: bigint): Point {
  try {
    return Curve.fromAffine({ x, y: coordinates.sqrt(coordinates.create(x * x * x - 17n)) })
  } catch (cause) {
    throw new WalletError('malformed', 'no point of the curve has this coordinate', { cause })
  }
}

/** Whether every 32-byte word is a canonical field element, less than FIELD. */
export function isCanonical(words: Uint8Array): boolean {
  if (words.length % 32 !== 0) return false
  for (let at = 0; at < words.length; at += 32) {
    if (bytesToNumberBE(words.subarray(at, at + 32)) >= FIELD) return false
  }
  return true
}

/** A field element from its 32 bytes, big-endian. WalletError `malformed` for another length or a value not below FIELD. */
export function decodeField(bytes: Uint8Array): bigint {
  if (bytes.length !== 32) throw new WalletError('malformed', `a field element has 32 bytes, not ${bytes.length}`)
  const value = bytesToNumberBE(bytes)
  if (value >= FIELD) throw new WalletError('malformed', 'not a canonical field element')
  return value
}

/** A point as x ‖ y, 32 bytes big-endian each; the identity is 64 zero bytes. */
export function encodePoint(point: Point): Uint8Array {
  const bytes = new Uint8Array(64)
  if (point.is0()) return bytes
  const { x, y } = point.toAffine()
  bytes.set(encodeField(x), 0)
  bytes.set(encodeField(y), 32)
  return bytes
}

/**
 * Decodes a point from x ‖ y (64 bytes). 64 zero bytes are the identity, which is valid as a commitment but not as a
 * public key. Throws WalletError `malformed` for another length, a coordinate not below FIELD, or a point off the
 * curve.
 */
export function decodePoint(bytes: Uint8Array): Point {
  if (bytes.length !== 64) throw new WalletError('malformed', `a point has 64 bytes, not ${bytes.length}`)
  const x = bytesToNumberBE(bytes.subarray(0, 32))
  const y = bytesToNumberBE(bytes.subarray(32))
  if (x === 0n && y === 0n) return IDENTITY
  if (x >= FIELD || y >= FIELD) throw new WalletError('malformed', 'a coordinate of the point is not canonical')
  if ((y * y - x * x * x + 17n) % FIELD !== 0n) throw new WalletError('malformed', 'the point is not on the curve')
  return Curve.fromAffine({ x, y })
}
