import { CompactEncrypt, importJWK } from 'jose'
import { expect, test } from 'vitest'
import { generateRelayKey, publicHalf } from '#lib/config/relay-key.ts'
import {
  sealAmount,
  sealBalance,
  sealOpening,
  unsealAmount,
  unsealBalance,
  unsealOpening,
  unsealPayout,
} from '#lib/relay/sealing.ts'
import { keyIdOf, sealPayout } from '#lib/wallet/seal.ts'

const key = generateRelayKey()
const to = publicHalf(key)
const item = { job: '6f9619ff-8b86-4011-b42d-00cf4fc964ff', position: 3 }
const opening = { value: 12_345n, blinding: 678n }

test.each([1n, 7n, 10_000_000n, 9_007_199_254_740_991n])('unseals %i', async (amount) => {
  expect(await unsealAmount(key, item, await sealAmount(to, item, amount))).toBe(amount)
})

test('makes seals of equal length, no two alike', async () => {
  const sealed = await Promise.all([1n, 1n, 9_007_199_254_740_991n].map((amount) => sealAmount(to, item, amount)))
  expect(new Set(sealed.map(({ length }) => length)).size).toBe(1)
  expect(new Set(sealed).size).toBe(3)
})

test('puts the item in the header, and not the amount', async () => {
  const [header = ''] = (await sealAmount(to, item, 5n)).split('.')
  const { epk, ...rest } = JSON.parse(Buffer.from(header, 'base64url').toString())
  expect(rest).toEqual({ alg: 'ECDH-ES', enc: 'A256GCM', job: item.job, item: 3 })
  expect(Object.keys(epk).sort()).toEqual(['crv', 'kty', 'x', 'y'])
})

test('unseals only for the same item, with the same key, and unaltered', async () => {
  const sealed = await sealAmount(to, item, 5n)
  await expect(unsealAmount(key, { ...item, position: 4 }, sealed)).rejects.toThrow('bound elsewhere')
  await expect(unsealAmount(key, { ...item, job: item.job.replace('6', '7') }, sealed)).rejects.toThrow('elsewhere')
  await expect(unsealAmount(generateRelayKey(), item, sealed)).rejects.toThrow()
  const parts = sealed.split('.')
  parts[3] = Buffer.from('0000000000000009').toString('base64url')
  await expect(unsealAmount(key, item, parts.join('.'))).rejects.toThrow()
})

test('rejects a payout’s seal that contains zero, or anything but 16 digits', async () => {
  const binding = { batch: item.job, contractor: item.job, spender: 'GA' }
  expect(await unsealPayout(key, binding, await sealPayout(to, binding, 5n))).toBe(5n)
  for (const plaintext of ['0'.repeat(16), '5', '-000000000000005', `${'0'.repeat(16)}5`, '']) {
    const sealed = await new CompactEncrypt(new TextEncoder().encode(plaintext))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: await keyIdOf(to), ...binding })
      .encrypt(await importJWK(to, 'ECDH-ES'))
    await expect(unsealPayout(key, binding, sealed), plaintext).rejects.toThrow('the seal holds no amount')
  }
})

test('binds openings and balances to their channel and kind', async () => {
  const sealed = await sealOpening(to, 'GA', opening)
  expect(await unsealOpening(key, 'GA', sealed)).toEqual(opening)
  await expect(unsealOpening(key, 'GB', sealed)).rejects.toThrow('elsewhere')
  await expect(unsealBalance(key, 'GA', sealed)).rejects.toThrow('elsewhere')
  const large = { value: 2n ** 127n - 1n, blinding: 2n ** 253n }
  const balance = { spendable: large, receiving: opening, cursor: '0000000012-0000000001' }
  const sealedBalance = await sealBalance(to, 'GA', balance)
  expect(await unsealBalance(key, 'GA', sealedBalance)).toEqual(balance)
  const other = await sealBalance(to, 'GA', { ...balance, spendable: opening })
  expect(other).toHaveLength(sealedBalance.length)
})
