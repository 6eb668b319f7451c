import type { Keypair, Transaction } from '@stellar/stellar-sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { NETWORK_LIMITS, nonRefundableFee } from '#lib/devnet/transaction/fees.ts'
import {
  callTransfer,
  codeOf,
  declare,
  keypair,
  openTestNetwork,
  sorobanDataOf,
  type TestNetwork,
  wrap,
} from './network-fixture.ts'

/** The largest declared write: two fit into a ledger, four into the queue. */
const LARGEST = NETWORK_LIMITS.writeBytes

const payers = Array.from({ length: 6 }, (_, index) => keypair(`payer ${index}`))
const sponsor = keypair('sponsor')
let network: TestNetwork

beforeEach(async () => {
  network = await openTestNetwork()
  await network.createAccounts(sponsor, ...payers)
})
afterEach(() => network.stop())

/** A transfer of XLM to itself that declares many written bytes and bids `bid` stroops. */
async function call(index: number, bid: number, resources: { writeBytes?: number; instructions?: number } = {}) {
  const payer = payers[index] as Keypair
  const prepared = await network.prepare(payer, callTransfer(payer, payer, 1n))
  const { instructions, diskReadBytes } = sorobanDataOf(prepared).resources
  const declared = declare(prepared, (data) =>
    data.setResources(resources.instructions ?? instructions, diskReadBytes, resources.writeBytes ?? LARGEST),
  )
  // Room for signatures, and for rent and events.
  const size = prepared.toEnvelope().toXdr().length + 200
  const fee = nonRefundableFee(sorobanDataOf(declared).resources, size) + 50_000n
  return declare(declared, (data) => data.setResourceFee(fee), { fee: Number(fee) + bid }, payer)
}

const resourceFeeOf = (transaction: Transaction, bid: number) => BigInt(transaction.fee) - BigInt(bid)
const statusesOf = (calls: Transaction[]) =>
  Promise.all(calls.map(async (transaction) => (await network.find(transaction)).status))

async function enqueue(...calls: Promise<Transaction>[]): Promise<Transaction[]> {
  const built = await Promise.all(calls)
  for (const transaction of built) expect(await network.send(transaction)).toBe('PENDING')
  return built
}
const fill = (...bids: number[]) => enqueue(...bids.map((bid, index) => call(index, bid)))

test('replaces the lowest bid, which later bids must exceed until the next ledger', async () => {
  const [, least] = await fill(200, 150, 300, 400)
  await enqueue(call(4, 151))
  expect(await network.send(least as Transaction)).toBe('TRY_AGAIN_LATER')
  // Even if there is room, a bid that isn't higher than the replaced one is rejected.
  const small = await call(5, 150, { writeBytes: 500 })
  const refused = await network.server.sendTransaction(small)
  expect(codeOf(refused)).toBe('txInsufficientFee')
  expect(refused.errorResult?.feeCharged).toBe(resourceFeeOf(small, 150) + 151n)
  network.close()
  await enqueue(call(5, 101, { writeBytes: 500 }))
})

test('includes the highest bids and charges all of them the lowest included', async () => {
  const calls = await fill(200, 150, 300, 400)
  network.close()
  expect(await statusesOf(calls)).toEqual(['NOT_FOUND', 'NOT_FOUND', 'SUCCESS', 'SUCCESS'])
  const fees = await network.server.getFeeStats()
  expect(fees.sorobanInclusionFee).toMatchObject({ max: '300', min: '300', transactionCount: '2' })
  network.close()
  // This time every transaction fits, so the base fee suffices.
  expect(await statusesOf(calls)).not.toContain('NOT_FOUND')
  const later = await network.server.getFeeStats()
  expect(later.sorobanInclusionFee).toMatchObject({ max: '300', min: '100', transactionCount: '4' })
})

test('ranks a fee bump by its bid for each of two operations', async () => {
  await fill(200, 200, 200, 200)
  const inner = await call(4, 100)
  const resourceFee = resourceFeeOf(inner, 100)
  const sent = await network.server.sendTransaction(wrap(inner, sponsor, resourceFee + 400n))
  expect(codeOf(sent)).toBe('txInsufficientFee')
  expect(sent.errorResult?.feeCharged).toBe(resourceFee + 401n)
  expect((await network.settle(wrap(inner, sponsor, resourceFee + 402n))).status).toBe('SUCCESS')
})

test('drops and bans a transaction after four ledgers', async () => {
  const [, , waiting] = (await fill(2000, 2000, 100, 1000)) as [Transaction, Transaction, Transaction]
  network.close()
  for (let ledger = 0; ledger < 3; ledger += 1) {
    await fill(2000, 2000)
    network.close()
  }
  expect((await network.find(waiting)).status).toBe('NOT_FOUND')
  expect(await network.send(waiting)).toBe('TRY_AGAIN_LATER')
})

test('splits the instructions of a ledger over two threads', async () => {
  const heavy = { writeBytes: 1000, instructions: 300_000_000 }
  const calls = await enqueue(...[0, 1, 2].map((index) => call(index, 100, heavy)))
  network.close()
  // A thread has 580 million instructions, too few for two calls of 300 million.
  expect((await statusesOf(calls)).toSorted()).toEqual(['NOT_FOUND', 'SUCCESS', 'SUCCESS'])
})
