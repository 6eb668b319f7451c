import { type Transaction, xdr } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { foundAccounts, keypair, pay, perturb, shareNetwork, wrap } from './network-fixture.ts'

const network = shareNetwork()
const accounts = foundAccounts(network, 'payer', 'sponsor', 'a', 'b', 'c')

test('allows one pending transaction per account: TRY_AGAIN_LATER for a later one, txBadSeq for an older one', async () => {
  const first = await network.build(accounts.payer, pay())
  const following = (step: bigint): Transaction =>
    perturb(first, { seqNum: BigInt(first.sequence) + step }, accounts.payer)
  expect(await network.send(first)).toBe('PENDING')
  expect(await network.send(following(2n))).toBe('TRY_AGAIN_LATER')
  expect(await network.send(following(-1n))).toBe('txBadSeq')
  expect(await network.send(await network.build(accounts.payer, pay('2')))).toBe('TRY_AGAIN_LATER')
  network.close()
  expect(await network.send(following(1n))).toBe('PENDING')
})

test('drops and bans a pending transaction that becomes invalid', async () => {
  const unbound = await network.build(accounts.payer, pay())
  const maxTime = BigInt(Math.floor(network.clock.now / 1000) + 12)
  const cond = xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: 0n, maxTime }))
  const transaction = perturb(unbound, { cond }, accounts.payer)
  expect(await network.send(transaction)).toBe('PENDING')
  network.clock.now += 20_000
  network.close()
  expect((await network.find(transaction)).status).toBe('NOT_FOUND')
  expect(await network.send(transaction)).toBe('TRY_AGAIN_LATER')
  expect((await network.settle(unbound)).status).toBe('SUCCESS')
})

test('requires a fee source to cover all of its pending fees', async () => {
  // 100 XLM less the reserve of 1 XLM: 99 XLM are available, enough for two fees of 40.
  const codes: string[] = []
  for (const payer of [accounts.a, accounts.b, accounts.c]) {
    codes.push(await network.send(wrap(await network.build(payer, pay()), accounts.sponsor, 400_000_000n)))
  }
  expect(codes).toEqual(['PENDING', 'PENDING', 'txInsufficientBalance'])
  network.close()
  expect((await network.account(accounts.sponsor)).balance).toBe(1_000_000_000n - 400n)
})

test('includes many accounts with one fee source in one ledger', async () => {
  const payers = Array.from({ length: 20 }, (_, index) => keypair(`of many ${index}`))
  await network.createAccounts(...payers)
  const bumps = await Promise.all(
    payers.map(async (account) => wrap(await network.build(account, pay()), accounts.sponsor, 200n)),
  )
  for (const bump of bumps) expect(await network.send(bump)).toBe('PENDING')
  network.close()
  const outcomes = await Promise.all(bumps.map(network.find))
  expect(new Set(outcomes.map((outcome) => outcome.status === 'SUCCESS' && outcome.ledger)).size).toBe(1)
  expect(outcomes.map(({ status }) => status)).toEqual(Array(20).fill('SUCCESS'))
})
