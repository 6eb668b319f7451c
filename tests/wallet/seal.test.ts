import { compactDecrypt, importJWK } from 'jose'
import { describe, expect, test } from 'vitest'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import { keyIdOf, readSeal, sealPayout } from '#lib/wallet/seal.ts'
import { keypair } from './fixtures.ts'

const key = generateRelayKey()
const binding = { batch: 'a batch', contractor: 'a contractor', spender: keypair('channel').publicKey() }
const seal = (amount: bigint) => sealPayout(publicHalf(key), binding, amount)

describe('a sealed amount', () => {
  test('is opened by the relays’ key, and names the key and its binding', async () => {
    const sealed = await seal(125_000_000n)
    const { plaintext } = await compactDecrypt(sealed, await importJWK(key, 'ECDH-ES'))
    expect(new TextDecoder().decode(plaintext)).toBe('0000000125000000')
    expect(readSeal(sealed)).toEqual({ ...binding, kid: await keyIdOf(publicHalf(key)) })
  })

  test('has the same length for every amount, and differs each time', async () => {
    const [small, large, again] = await Promise.all([seal(1n), seal(9_999_999_999_999_999n), seal(1n)])
    expect(small).toHaveLength(large.length)
    expect(small).not.toBe(again)
  })

  test.each([0n, -1n, 10n ** 16n])('cannot be made of %d base units', async (amount) => {
    await expect(seal(amount)).rejects.toThrow(RangeError)
  })

  test('is not read from another text', async () => {
    const sealed = await seal(1n)
    const [header = '', , ...rest] = sealed.split('.')
    const withHeader = (changed: object) =>
      [Buffer.from(JSON.stringify(changed)).toString('base64url'), '', ...rest].join('.')
    const fields = JSON.parse(Buffer.from(header, 'base64url').toString())
    const { contractor: _, ...incomplete } = fields
    const texts = [
      '',
      'a note',
      `${sealed}.`,
      sealed.slice(1),
      `${sealed}=`,
      withHeader(incomplete),
      withHeader({ ...fields, batch: 1 }),
      withHeader({ ...fields, alg: 'dir' }),
      withHeader({ ...fields, enc: 'A128GCM' }),
    ]
    expect(texts.filter((text) => readSeal(text) !== undefined)).toEqual([])
    expect(readSeal(withHeader(fields))).toBeDefined()
  })
})
