import { hkdfSync } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { decodePoint, FIELD, H, multiply } from '#lib/wallet/grumpkin.ts'
import { addressToField, deriveKeys, drawSalt, importKeys } from '#lib/wallet/keys.ts'
import { hash, lanes, TAG } from '#lib/wallet/poseidon.ts'
import { bytes, hex, keypair, seeded, TOKEN } from './fixtures.ts'

/** The vector that a public SDK offers for the whole chain from a Stellar key to the registered keys. */
const CHAIN = {
  seed: new Uint8Array(32).fill(0x11),
  contract: 'CA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
  contractField: 0x2982b1373023a907937e2a08d12801dd31e58967391f051c4b3d47a37c387afan,
  accountField: 0x0d65ceefc88131851c4a6200f566eebec91447e0a492a1892b4bb0eb58c7332an,
  sk: 0x1d6c9fd15b6eb55a0d74cd03c7e8c591941cf3b819a734729596a5ad06cb947en,
  vk: 0x10a7dc532f3f0f60babd1d91e55bb7a2471608b9234ecb41407345c322b1d566n,
  spendingKey:
    '0a5a608c7dce17d8cf644793e8bec28574a2e154fe7c9957527ea47254b88aad0528fab63c8fc3e96199df988357b8e798319b0f91b05731365534df9e5e7ec3',
  viewingKey:
    '0abb6030c6cee95d9f6426fcd85bc6165e5d8b7b4ab175a8b362e3bdab81b8241f03bed65ace57ce1be7c74765821283f46d3f0e99c95f591f235fc1e3c19e91',
}

describe('Poseidon2', () => {
  test('rejects an input that is not canonical', () => {
    expect(() => hash(TAG.viewingKey, FIELD, 1n)).toThrow(RangeError)
    expect(() => hash(TAG.viewingKey, -1n, 1n)).toThrow(RangeError)
    expect(() => lanes(TAG.auditorSender, 1n, FIELD)).toThrow(RangeError)
  })
})

describe('keys', () => {
  test('match the public vector, from the Stellar key alone', () => {
    const signer = Keypair.fromRawEd25519Seed(CHAIN.seed)
    expect(addressToField(CHAIN.contract)).toBe(CHAIN.contractField)
    expect(addressToField(signer.publicKey())).toBe(CHAIN.accountField)
    const keys = deriveKeys(signer, CHAIN.contract)
    expect(keys.sk).toBe(CHAIN.sk)
    expect(keys.vk).toBe(CHAIN.vk)
    expect(hex(keys.spendingKey)).toBe(CHAIN.spendingKey)
    expect(hex(keys.viewingKey)).toBe(CHAIN.viewingKey)
  })

  test('are derived with the next counter, four bytes little-endian, when a candidate exceeds the field', () => {
    const domain = 'openzeppelin/confidential-token/v1/sk'
    const signer = keypair('holder 12')
    const root = signer.signMessage(`${domain}\n${TOKEN}\n${signer.publicKey()}`)
    const bound = [TOKEN, signer.publicKey()].map((address) => addressToField(address).toString(16).padStart(64, '0'))
    const draw = (counter: string) => {
      const drawn = hkdfSync('sha512', root, domain, Buffer.from(bound.join('') + counter, 'hex'), 32)
      return BigInt(`0x${Buffer.from(drawn).toString('hex')}`) & ((1n << 254n) - 1n)
    }
    expect(draw('00000000')).toBeGreaterThanOrEqual(FIELD)
    expect(deriveKeys(signer, TOKEN).sk).toBe(draw('01000000'))
  })

  test('are multiples of H by the secrets', () => {
    const keys = deriveKeys(keypair('someone'), TOKEN)
    expect(decodePoint(keys.spendingKey).equals(multiply(H, keys.sk))).toBe(true)
    expect(decodePoint(keys.viewingKey).equals(multiply(H, keys.vk))).toBe(true)
  })

  test('differ by account and by contract', () => {
    const secrets = [
      deriveKeys(keypair('one'), TOKEN),
      deriveKeys(keypair('two'), TOKEN),
      deriveKeys(keypair('one'), CHAIN.contract),
    ].flatMap(({ sk, vk }) => [sk, vk])
    expect(new Set(secrets).size).toBe(6)
  })

  test('require a secret key', () => {
    expect(() => deriveKeys(Keypair.fromPublicKey(keypair('one').publicKey()), TOKEN)).toThrow()
  })

  test('can be imported from a secret in [1, FIELD)', () => {
    expect(importKeys(CHAIN.sk, CHAIN.contract).vk).toBe(CHAIN.vk)
    for (const sk of [0n, -1n, FIELD]) expect(() => importKeys(sk, TOKEN)).toThrow('not a spending secret')
  })

  test.each(['', 'G', `${TOKEN}A`, TOKEN.toLowerCase(), `M${TOKEN.slice(2)}`])(
    'returns no field for the address "%s"',
    (text) => {
      expect(() => addressToField(text)).toThrow('strkey')
    },
  )
})

describe('a salt', () => {
  test('is derived again if the bytes are 0 or exceed the field', () => {
    const draws = [new Uint8Array(32), new Uint8Array(32).fill(0xff), bytes(`c0${'00'.repeat(30)}05`)]
    const salt = drawSalt(() => draws.shift() ?? new Uint8Array(32).fill(1))
    expect(salt).toBe(5n)
    expect(draws).toHaveLength(0)
  })

  test('does not repeat', () => {
    const random = seeded('salts')
    const salts = Array.from({ length: 100 }, () => drawSalt(random))
    expect(new Set(salts).size).toBe(100)
    expect(salts.every((salt) => salt > 0n && salt < FIELD)).toBe(true)
  })
})
