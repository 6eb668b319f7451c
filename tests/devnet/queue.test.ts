import { Asset, type Keypair, Operation, type Transaction, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { codeOf, keypair, openTestNetwork, perturb, root, type TestNetwork, wrap } from './network-fixture.ts'

let network: TestNetwork
let payer: Keypair
let sponsor: Keypair
let count = 0

beforeAll(async () => {
  network = await openTestNetwork()
})
afterAll(() => network.stop())
beforeEach(async () => {
  count += 1
  payer = keypair(`payer ${count}`)
  sponsor = keypair(`sponsor ${count}`)
  await network.found(payer, sponsor)
})

const pay = (amount = '1') => Operation.payment({ destination: root.publicKey(), asset: Asset.native(), amount })
const send = async (transaction: Parameters<TestNetwork['settle']>[0]) =>
  codeOf(await network.server.sendTransaction(transaction))
const following = (transaction: Transaction, signer: Keypair, step = 1n) =>
  perturb(transaction, { seqNum: BigInt(transaction.sequence) + step }, signer)

test('one pending transaction per account: the same is DUPLICATE, the next TRY_AGAIN_LATER, an older txBadSeq', async () => {
  const first = await network.build(payer, pay())
  expect(await send(first)).toBe('PENDING')
  expect(await send(first)).toBe('DUPLICATE')
  expect(await send(following(first, payer))).toBe('TRY_AGAIN_LATER')
  expect(await send(following(first, payer, 2n))).toBe('TRY_AGAIN_LATER')
  expect(await send(following(first, payer, -1n))).toBe('txBadSeq')
  expect(await send(await network.build(payer, pay('2')))).toBe('TRY_AGAIN_LATER')
  network.close()
  expect(await send(following(first, payer))).toBe('PENDING')
})

test('a pending transaction that becomes invalid is left out and banned', async () => {
  const bound = await network.build(payer, pay())
  const soon = Math.floor(network.clock.now / 1000) + 12
  const transaction = withMaxTime(bound, soon)
  expect(await send(transaction)).toBe('PENDING')
  network.clock.now += 20_000
  network.close()
  const hash = Buffer.from(transaction.hash()).toString('hex')
  expect((await network.server.getTransaction(hash)).status).toBe('NOT_FOUND')
  expect(await send(transaction)).toBe('TRY_AGAIN_LATER')
  expect((await network.settle(bound)).status).toBe('SUCCESS')
})

test('a fee source must cover all that it has pending', async () => {
  const payers = [keypair(`a ${count}`), keypair(`b ${count}`), keypair(`c ${count}`)]
  await network.found(...payers)
  // 100 XLM less the reserve of 1 XLM: 99 XLM are available, enough for two fees of 40.
  const bumps = await Promise.all(
    payers.map(async (account) => wrap(await network.build(account, pay()), sponsor, 400_000_000n)),
  )
  const codes: string[] = []
  for (const bump of bumps) codes.push(await send(bump))
  expect(codes).toEqual(['PENDING', 'PENDING', 'txInsufficientBalance'])
  network.close()
  expect((await network.account(sponsor)).balance).toBe(1_000_000_000n - 400n)
})

test('many accounts under one fee source share a ledger', async () => {
  const payers = Array.from({ length: 20 }, (_, index) => keypair(`of many ${count} ${index}`))
  await network.found(...payers)
  const bumps = await Promise.all(
    payers.map(async (account) => wrap(await network.build(account, pay()), sponsor, 200n)),
  )
  for (const bump of bumps) expect(await send(bump)).toBe('PENDING')
  network.close()
  const outcomes = await Promise.all(bumps.map((bump) => network.server.getTransaction(hashOf(bump))))
  expect(new Set(outcomes.map((outcome) => outcome.status !== 'NOT_FOUND' && outcome.ledger)).size).toBe(1)
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['SUCCESS']))
})

const hashOf = (transaction: { hash(): Uint8Array }) => Buffer.from(transaction.hash()).toString('hex')

function withMaxTime(transaction: Transaction, maxTime: number): Transaction {
  const cond = xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: 0n, maxTime: BigInt(maxTime) }))
  return perturb(transaction, { cond }, payer)
}
