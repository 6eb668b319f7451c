import { randomUUID } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import type { Item } from '#lib/relay/item-row.ts'
import { isMarked, markSalts } from '#lib/relay/payment-mark.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { encodeField, FIELD } from '#lib/wallet/grumpkin.ts'
import { drawSalt, openHolder } from '#lib/wallet/keys.ts'

const TOKEN = 'CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2KM'
const channel = openHolder(Keypair.random(), TOKEN)
const other = openHolder(Keypair.random(), TOKEN)

const itemOf = (given: Partial<Item>) => ({ job: randomUUID(), position: 0, payout: null, ...given }) as Item
const draw = (item: Item, by = channel) => {
  const { random } = markSalts({} as Deployment, by, item)
  if (!random) throw new Error('no random source')
  return drawSalt(random)
}
/** The event of a transfer, and of a spender's. */
const fieldsOf = (salt: bigint, name = 'sigma') => ({ [name]: encodeField(salt) })

test('marks a payment with its payout, which only the channel can read', () => {
  const [payout, another] = [randomUUID(), randomUUID()]
  for (let round = 0; round < 50; round += 1) {
    const fields = fieldsOf(draw(itemOf({ payout, position: round })), 'sigma_a_new')
    expect(isMarked(channel, fields, payout)).toBe(true)
    expect(isMarked(channel, fields, another)).toBe(false)
    expect(isMarked(other, fields, payout)).toBe(false)
  }
})

test('marks a payment of a job with its position', () => {
  const item = itemOf({ position: 1 })
  const fields = fieldsOf(draw(item))
  expect([1, 11].map((position) => isMarked(channel, fields, `${item.job}/${position}`))).toEqual([true, false])
})

test('draws a new salt for each proof of the same payment, anywhere in the field', () => {
  const item = itemOf({ payout: randomUUID() })
  const salts = Array.from({ length: 2_000 }, () => draw(item))
  expect(new Set(salts).size).toBe(salts.length)
  for (const salt of salts) expect(salt > 0n && salt < FIELD).toBe(true)
  // Each bit but the highest is 1 in about half of them; the standard deviation is 22.
  for (let bit = 0n; bit < 252n; bit += 1n) {
    const ones = salts.filter((salt) => ((salt >> bit) & 1n) === 1n).length
    expect(Math.abs(ones - 1_000), `bit ${bit}`).toBeLessThan(150)
  }
})
