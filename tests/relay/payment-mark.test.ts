import { randomUUID } from 'node:crypto'
import { Keypair } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { findMarked, isMarked, markSalts } from '#lib/relay/payment-mark.ts'
import type { Line } from '#lib/transfers/line.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { encodeField, FIELD } from '#lib/wallet/grumpkin.ts'
import { drawSalt, openHolder } from '#lib/wallet/keys.ts'
import { isMarkedFor, markKeyOf } from '#lib/wallet/payment-mark.ts'
import type { Allowance } from '#lib/wallet/spending.ts'

const TOKEN = 'CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2KM'
const channel = openHolder(Keypair.random(), TOKEN)
const other = openHolder(Keypair.random(), TOKEN)
const [own, others] = [markKeyOf(channel.keys.vk), markKeyOf(other.keys.vk)]

const lineOf = (given: Partial<Line>) => ({ job: randomUUID(), position: 0, payout: null, ...given }) as Line
const delegation = { delegationKey: 4_711n } as Allowance
const draw = (line: Line, by = channel, allowance?: Allowance) => {
  const { random } = markSalts({} as Deployment, by, line, allowance)
  if (!random) throw new Error('no random source')
  return drawSalt(random)
}
/** The event of a payment of the channel, from its own balance or from an escrow. */
const eventOf = (salt: bigint, from = channel.address) => ({ channel: channel.address, from, salt: encodeField(salt) })

test('marks a payment from an escrow with its payout, which the channel and the owner can read', () => {
  const [payout, another] = [randomUUID(), randomUUID()]
  for (let round = 0; round < 50; round += 1) {
    const salt = draw(lineOf({ payout, position: round }), channel, delegation)
    const event = eventOf(salt, other.address)
    expect(isMarked(own, event, payout)).toBe(true)
    expect(isMarked(own, event, another)).toBe(false)
    expect(isMarked(others, event, payout)).toBe(false)
    const byOwner = (key: bigint, purpose: string) =>
      isMarkedFor({ delegation: markKeyOf(key) }, encodeField(salt), purpose, true)
    expect([byOwner(4_711n, payout), byOwner(4_711n, another), byOwner(4_712n, payout)]).toEqual([true, false, false])
  }
})

test('reads the marks from before the owner had a half of them', () => {
  const payout = randomUUID()
  expect(isMarked(own, eventOf(draw(lineOf({ payout })), other.address), payout)).toBe(true)
})

test('marks a payment of a job with its position, by the whole code', () => {
  const line = lineOf({ position: 1 })
  const salt = draw(line)
  expect([1, 11].map((position) => isMarked(own, eventOf(salt), `${line.job}/${position}`))).toEqual([true, false])
  const changed = encodeField(salt).with(31, (encodeField(salt)[31] ?? 0) ^ 1)
  const event = { ...eventOf(salt), salt: changed }
  expect(isMarked(own, event, `${line.job}/1`)).toBe(false)
})

test('draws a new salt for each proof of the same payment, anywhere in the field', () => {
  const line = lineOf({ payout: randomUUID() })
  const salts = Array.from({ length: 2_000 }, () => draw(line, channel, delegation))
  expect(new Set(salts).size).toBe(salts.length)
  for (const salt of salts) expect(salt > 0n && salt < FIELD).toBe(true)
  // Each bit but the highest is 1 in about half of them; the standard deviation is 22.
  for (let bit = 0n; bit < 252n; bit += 1n) {
    const ones = salts.filter((salt) => ((salt >> bit) & 1n) === 1n).length
    expect(Math.abs(ones - 1_000), `bit ${bit}`).toBeLessThan(150)
  }
})

test('lets other work of the process go on while it reads the marks of 10,000 payments', async () => {
  const salt = encodeField(draw(lineOf({ payout: randomUUID() }), channel, delegation))
  const payments = Array.from({ length: 10_000 }, () => ({ channel: channel.address, from: other.address, salt }))
  const purpose = randomUUID()
  let turns = 0
  const count = () => {
    turns += 1
    turn = setImmediate(count)
  }
  let turn = setImmediate(count)
  expect(
    await findMarked(new Map([[channel.address, own]]), payments, (payment) => ({ payment, purpose })),
  ).toBeUndefined()
  clearImmediate(turn)
  expect(turns).toBeGreaterThanOrEqual(20)
})
