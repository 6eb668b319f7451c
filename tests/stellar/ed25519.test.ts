import { createHash } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import { Keypair } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { signEd25519, verifyEd25519 } from '#lib/stellar/node/ed25519.ts'

const hex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'))

/** The SDK's verdict; it throws on some inputs for which the service returns false. */
function sdkVerdict(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    return new Keypair({ type: 'ed25519', publicKey }).verify(message, signature)
  } catch {
    return false
  }
}

// RFC 8032 §7.1: TEST 1, 2, 3
const VECTORS = [
  {
    seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    message: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    publicKey: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    message: '72',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
  {
    seed: 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    publicKey: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    message: 'af82',
    signature:
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  },
]

const [first] = VECTORS
if (!first) throw new Error('no vectors')
const seed = hex(first.seed)
const publicKey = hex(first.publicKey)
const message = new TextEncoder().encode('pay the contractors')
const signature = signEd25519(seed, message)
const L = 2n ** 252n + 27742317777372353535851937790883648493n

const toLittleEndian = (value: bigint) => hex(value.toString(16).padStart(64, '0')).reverse()
const fromLittleEndian = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
const join = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts))
const P = 2n ** 255n - 19n

describe('RFC 8032', () => {
  for (const [index, vector] of VECTORS.entries()) {
    test(`test ${index + 1} signs and verifies`, () => {
      expect(Buffer.from(signEd25519(hex(vector.seed), hex(vector.message))).toString('hex')).toBe(vector.signature)
      expect(verifyEd25519(hex(vector.publicKey), hex(vector.message), hex(vector.signature))).toBe(true)
      expect(sdkVerdict(hex(vector.publicKey), hex(vector.message), hex(vector.signature))).toBe(true)
    })
  }

  test('agrees with the SDK on 64 keys, with and without a flipped bit in the signature', () => {
    for (let index = 0; index < 64; index++) {
      const own = createHash('sha256').update(`seed ${index}`).digest()
      const pair = Keypair.fromRawEd25519Seed(own)
      const text = createHash('sha256').update(`message ${index}`).digest()
      const good = signEd25519(own, text)
      expect(Buffer.from(good).equals(Buffer.from(pair.sign(text)))).toBe(true)
      expect(verifyEd25519(pair.rawPublicKey(), text, good)).toBe(true)
      const bad = Uint8Array.from(good)
      bad[index] = (bad[index] ?? 0) ^ (1 << (index % 8))
      expect(verifyEd25519(pair.rawPublicKey(), text, bad)).toBe(false)
      expect(sdkVerdict(pair.rawPublicKey(), text, bad)).toBe(false)
    }
  })

  test('rejects a seed of the wrong length', () => {
    expect(() => signEd25519(new Uint8Array(31), message)).toThrow(RangeError)
  })
})

/** The eight points of small order: multiples of one of order eight, found as L times a point outside the subgroup. */
function torsion(): ed25519Point[] {
  for (let y = 2n; ; y++) {
    try {
      const point = ed25519.Point.fromBytes(toLittleEndian(y))
      const small = point.multiplyUnsafe(L - 1n).add(point)
      const multiples = [small]
      while (multiples.length < 8) multiples.push((multiples.at(-1) ?? small).add(small))
      if (new Set(multiples.map((each) => each.toHex())).size === 8) return multiples
    } catch {
      // No point has this y.
    }
  }
}
type ed25519Point = InstanceType<typeof ed25519.Point>

/** Every encoding of a point of small order: canonical or not, with and without the sign bit. */
const SMALL_ORDER = [...new Set([...torsion().map((point) => point.toAffine().y), P, P + 1n])].flatMap((y) => [
  toLittleEndian(y),
  toLittleEndian(y | (1n << 255n)),
])

describe('hostile table', () => {
  const s = fromLittleEndian(signature.subarray(32))
  const rejected: [string, Uint8Array, Uint8Array, Uint8Array][] = [
    ['S + L', publicKey, message, join(signature.subarray(0, 32), toLittleEndian(s + L))],
    ['S = L', publicKey, message, join(signature.subarray(0, 32), toLittleEndian(L))],
    ['S all ones', publicKey, message, join(signature.subarray(0, 32), new Uint8Array(32).fill(255))],
    ['another message', publicKey, join(message, new Uint8Array(1)), signature],
    ['zero signature', publicKey, message, new Uint8Array(64)],
    ['short signature', publicKey, message, signature.subarray(0, 63)],
    ['long signature', publicKey, message, join(signature, new Uint8Array(1))],
    ['empty signature', publicKey, message, new Uint8Array()],
    ['short key', publicKey.subarray(0, 31), message, signature],
    ['long key', join(publicKey, new Uint8Array(1)), message, signature],
    ['empty key', new Uint8Array(), message, signature],
    ['a key that is not a point', toLittleEndian(2n), message, signature],
    ['R that is not a point', publicKey, message, join(toLittleEndian(2n), signature.subarray(32))],
  ]
  for (const [name, key, text, bytes] of rejected) {
    test(name, () => {
      expect(verifyEd25519(key, text, bytes)).toBe(false)
      expect(sdkVerdict(key, text, bytes)).toBe(false)
    })
  }

  test('finds fourteen encodings of a point of small order', () => {
    expect(SMALL_ORDER).toHaveLength(14)
  })

  test('rejects forgeries with a key of small order (R = S·B, or R of small order and S = 0)', () => {
    for (const key of SMALL_ORDER) {
      for (let index = 0; index < 24; index++) {
        const text = createHash('sha256').update(`forgery ${index}`).digest()
        const scalar = BigInt(index + 1)
        const forgeries = [
          join(ed25519.Point.BASE.multiply(scalar).toBytes(), toLittleEndian(scalar)),
          ...SMALL_ORDER.map((point) => join(point, new Uint8Array(32))),
        ]
        for (const forgery of forgeries) expect(verifyEd25519(key, text, forgery)).toBe(false)
      }
    }
  })

  test('rejects the same forgeries as the SDK', () => {
    for (const key of SMALL_ORDER) {
      const forgery = join(ed25519.Point.BASE.multiply(5n).toBytes(), toLittleEndian(5n))
      expect(sdkVerdict(key, message, forgery)).toBe(false)
    }
  })

  test('rejects a key whose y is not canonical', () => {
    for (let offset = 0n; offset < 19n; offset++) {
      for (const sign of [0n, 1n << 255n]) {
        const key = toLittleEndian((P + offset) | sign)
        const forgery = join(ed25519.Point.BASE.multiply(7n).toBytes(), toLittleEndian(7n))
        expect(verifyEd25519(key, message, forgery)).toBe(false)
        expect(sdkVerdict(key, message, forgery)).toBe(false)
      }
    }
  })

  test('rejects an R of small order, as the ledger does', () => {
    const { scalar, pointBytes } = ed25519.utils.getExtendedPublicKey(seed)
    const identity = toLittleEndian(1n)
    const k =
      fromLittleEndian(
        createHash('sha512')
          .update(join(identity, pointBytes, message))
          .digest(),
      ) % L
    const crafted = join(identity, toLittleEndian((k * scalar) % L))
    expect(verifyEd25519(pointBytes, message, crafted)).toBe(false)
  })

  test('verifies more keys than the cache holds', () => {
    for (let index = 0; index < 1100; index++) {
      const own = createHash('sha256').update(`cache ${index}`).digest()
      const forged = verifyEd25519(createHash('sha256').update(own).digest(), message, signature)
      expect(forged).toBe(false)
    }
    expect(verifyEd25519(publicKey, message, signature)).toBe(true)
  })
})
