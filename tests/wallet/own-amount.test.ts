import { Keypair } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { openHolder } from '#lib/wallet/keys.ts'
import { decryptForSelf, encryptForSelf } from '#lib/wallet/own-amount.ts'
import { readSeal } from '#lib/wallet/seal.ts'
import { TOKEN } from './fixtures.ts'

const own = openHolder(Keypair.random(), TOKEN)
const payout = { batch: 'b', contractor: 'c' }

test('encrypts an amount for the account alone, and for one payout', async () => {
  const encrypted = await encryptForSelf(own, payout, 12_5000000n)
  expect(await decryptForSelf(own, payout, encrypted)).toBe(12_5000000n)
  expect(await decryptForSelf(openHolder(Keypair.random(), TOKEN), payout, encrypted)).toBeUndefined()
  expect(await decryptForSelf(own, { ...payout, contractor: 'd' }, encrypted)).toBeUndefined()
  expect(await decryptForSelf(own, { ...payout, batch: 'd' }, encrypted)).toBeUndefined()
  for (const other of ['', 'sealed', `${encrypted}x`, encrypted.replace(/\..*/, '....')]) {
    expect(await decryptForSelf(own, payout, other)).toBeUndefined()
  }
})

test('reveals neither the amount nor its length, and is no seal to a relay', async () => {
  const [one, most] = [await encryptForSelf(own, payout, 1n), await encryptForSelf(own, payout, 10n ** 16n - 1n)]
  expect(one).toHaveLength(most.length)
  expect(await encryptForSelf(own, payout, 1n)).not.toBe(one)
  expect(readSeal(one)).toBeUndefined()
  for (const amount of [0n, -1n, 10n ** 16n])
    await expect(encryptForSelf(own, payout, amount)).rejects.toThrow(RangeError)
})
