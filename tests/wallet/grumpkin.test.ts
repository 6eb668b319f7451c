import { describe, expect, test } from 'vitest'
import {
  add,
  decodeField,
  decodePoint,
  encodeField,
  encodePoint,
  FIELD,
  G,
  H,
  IDENTITY,
  isCanonical,
  multiply,
  ORDER,
} from '#lib/wallet/grumpkin.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { bytes, hex, seeded } from './fixtures.ts'

const G_HEX =
  '083e7911d835097629f0067531fc15cafd79a89beecb39903f69572c636f4a5a1a7f5efaad7f315c25a918f30cc8d7333fccab7ad7c90f14de81bcc528f9935d'
const H_HEX =
  '054aa86a73cb8a34525e5bbed6e43ba1198e860f5f3950268f71df4591bde402209dcfbf2cfb57f9f6046f44d71ac6faf87254afc7407c04eb621a6287cac126'
const number = (text: string): bigint => BigInt(`0x${text}`)

describe('the group', () => {
  test('has the generators of the protocol', () => {
    expect(hex(encodePoint(G))).toBe(G_HEX)
    expect(hex(encodePoint(H))).toBe(H_HEX)
  })

  test('has the order that scalars are reduced modulo', () => {
    expect(multiply(G, 0n).equals(IDENTITY)).toBe(true)
    expect(multiply(G, ORDER).equals(IDENTITY)).toBe(true)
    expect(multiply(G, -1n).equals(G.negate())).toBe(true)
    expect(multiply(G, ORDER + 5n).equals(multiply(G, 5n))).toBe(true)
    expect(multiply(IDENTITY, 5n).equals(IDENTITY)).toBe(true)
  })

  test('multiplies distributively, with tables (G, H) and without', () => {
    const random = seeded('distributive')
    for (const point of [G, H, multiply(G, 77n)]) {
      const [a, b] = [number(hex(random(31))), number(hex(random(31)))]
      expect(add(multiply(point, a), multiply(point, b)).equals(multiply(point, a + b))).toBe(true)
      expect(
        multiply(point, a)
          .subtract(multiply(point, b))
          .equals(multiply(point, a - b)),
      ).toBe(true)
    }
  })
})

describe('the codec', () => {
  test('round-trips points, including the identity', () => {
    for (const point of [G, H, multiply(G, 3n), IDENTITY]) {
      const encoded = encodePoint(point)
      expect(encoded).toHaveLength(64)
      expect(decodePoint(encoded).equals(point)).toBe(true)
    }
    expect(hex(encodePoint(IDENTITY))).toBe('00'.repeat(64))
  })

  test('decodes a point for further arithmetic', () => {
    expect(hex(encodePoint(decodePoint(bytes(G_HEX)).subtract(G)))).toBe('00'.repeat(64))
  })

  const [x, y] = [G_HEX.slice(0, 64), G_HEX.slice(64)]
  const beyond = (coordinate: string) => hex(encodeField(number(coordinate) + FIELD))
  test.each([
    ['nothing', ''],
    ['63 bytes', G_HEX.slice(2)],
    ['65 bytes', `${G_HEX}00`],
    ['compressed', `02${x}`],
    ['SEC 1 uncompressed', `04${G_HEX}`],
    ['off the curve', `${x}${hex(encodeField(number(y) + 1n))}`],
    ['coordinates exchanged', `${y}${x}`],
    ['a point of y² = x³ + 17', `${hex(encodeField(FIELD - number(x)))}${y}`],
    ['x = 0 with some y', `${'00'.repeat(32)}${y}`],
    ['x not canonical', `${beyond(x)}${y}`],
    ['y not canonical', `${x}${beyond(y)}`],
    ['identity not canonical', `${hex(encodeField(FIELD))}${'00'.repeat(32)}`],
    ['all ones', 'ff'.repeat(64)],
  ])('refuses %s', (_, encoded) => {
    const error = catchError(() => decodePoint(bytes(encoded)))
    expect(error.code).toBe('malformed')
  })

  test('accepts canonical field elements of 32 bytes only', () => {
    const [largest, modulus] = [encodeField(FIELD - 1n), encodeField(FIELD)]
    for (const words of [encodeField(0n), largest, Buffer.concat([largest, largest])]) {
      expect(isCanonical(words)).toBe(true)
    }
    for (const words of [modulus, Buffer.concat([largest, modulus]), new Uint8Array(31), new Uint8Array(33)]) {
      expect(isCanonical(words)).toBe(false)
    }
    expect(decodeField(encodeField(FIELD - 1n))).toBe(FIELD - 1n)
    expect(catchError(() => decodeField(encodeField(FIELD))).code).toBe('malformed')
    expect(catchError(() => decodeField(new Uint8Array(33))).code).toBe('malformed')
  })
})

function catchError(attempt: () => unknown): WalletError {
  try {
    attempt()
  } catch (error) {
    if (error instanceof WalletError) return error
    throw error
  }
  throw new Error('nothing was refused')
}
