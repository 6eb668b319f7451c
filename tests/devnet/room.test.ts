import {
  Address,
  Asset,
  Contract,
  type Keypair,
  nativeToScVal,
  SorobanDataBuilder,
  type Transaction,
  xdr,
} from '@stellar/stellar-sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { NETWORK_LIMITS, nonRefundableFee } from '#lib/devnet/transaction/fees.ts'
import { codeOf, keypair, openTestNetwork, passphrase, perturb, type TestNetwork, wrap } from './network-fixture.ts'

const NATIVE = Asset.native().contractId(passphrase)
/** Two of the largest writers fit into a ledger, four into the queue. */
const LARGEST = NETWORK_LIMITS.writeBytes

let network: TestNetwork
let payers: Keypair[]
let sponsor: Keypair

beforeEach(async () => {
  network = await openTestNetwork()
  payers = Array.from({ length: 6 }, (_, index) => keypair(`payer ${index}`))
  sponsor = keypair('sponsor')
  await network.found(sponsor, ...payers)
})
afterEach(() => network.stop())

/** A transfer of XLM to itself that declares much to write and bids `bid` stroops for its place. */
async function call(payer: Keypair, bid: number, resources: { writeBytes?: number; instructions?: number } = {}) {
  const address = Address.fromString(payer.publicKey()).toScVal()
  const operation = new Contract(NATIVE).call('transfer', address, address, nativeToScVal(1n, { type: 'i128' }))
  const prepared = await network.server.prepareTransaction(await network.draft(payer, [operation]))
  const envelope = prepared.toEnvelope()
  if (envelope.type !== 'envelopeTypeTx' || envelope.v1.tx.ext.type !== 'sorobanData')
    throw new Error('a contract call')
  const data = envelope.v1.tx.ext.sorobanData
  const { instructions, diskReadBytes } = data.resources
  const declared = new SorobanDataBuilder(data)
    .setResources(resources.instructions ?? instructions, diskReadBytes, resources.writeBytes ?? LARGEST)
    .build()
  // Room for signatures, and for rent and events.
  const resourceFee = nonRefundableFee(declared.resources, envelope.toXdr().length + 200) + 50_000n
  const sorobanData = new xdr.SorobanTransactionData({ ...declared, resourceFee })
  const fee = Number(resourceFee) + bid
  return perturb(prepared as Transaction, { ext: xdr.TransactionExt.sorobanData(sorobanData), fee }, payer)
}

const send = async (transaction: Parameters<TestNetwork['settle']>[0]) =>
  codeOf(await network.server.sendTransaction(transaction))
const found = (transaction: { hash(): Uint8Array }) =>
  network.server.getTransaction(Buffer.from(transaction.hash()).toString('hex'))
const resourceFeeOf = (transaction: Transaction, bid: number) => BigInt(transaction.fee) - BigInt(bid)

/** [payer, bid] of each, in this order. */
async function fill(...bids: number[]): Promise<Transaction[]> {
  const calls = await Promise.all(bids.map((bid, index) => call(payers[index] as Keypair, bid)))
  for (const transaction of calls) expect(await send(transaction)).toBe('PENDING')
  return calls
}

test('who offers more takes the place of who offers least, and until the next ledger that offer must be beaten', async () => {
  const [, least] = await fill(200, 150, 300, 400)
  const dearer = await call(payers[4] as Keypair, 151)
  expect(await send(dearer)).toBe('PENDING')
  expect(await send(least as Transaction)).toBe('TRY_AGAIN_LATER')
  // Room or not, the offer that was pushed out is not enough any more.
  const small = await call(payers[5] as Keypair, 150, { writeBytes: 500 })
  const refused = await network.server.sendTransaction(small)
  expect(codeOf(refused)).toBe('txInsufficientFee')
  expect(refused.errorResult?.feeCharged).toBe(resourceFeeOf(small, 150) + 151n)
  network.close()
  expect(await send(await call(payers[5] as Keypair, 101, { writeBytes: 500 }))).toBe('PENDING')
})

test('a ledger takes who offers most, and all pay what the least of them offers', async () => {
  const calls = await fill(200, 150, 300, 400)
  network.close()
  const outcomes = await Promise.all(calls.map(found))
  expect(outcomes.map(({ status }) => status)).toEqual(['NOT_FOUND', 'NOT_FOUND', 'SUCCESS', 'SUCCESS'])
  const fees = await network.server.getFeeStats()
  expect(fees.sorobanInclusionFee).toMatchObject({ max: '300', min: '300', transactionCount: '2' })
  network.close()
  // No transaction had to wait this time, so the base fee is enough.
  expect(await Promise.all(calls.map(async (one) => (await found(one)).status))).not.toContain('NOT_FOUND')
  const later = await network.server.getFeeStats()
  expect(later.sorobanInclusionFee).toMatchObject({ max: '300', min: '100', transactionCount: '4' })
})

test('a fee bump competes with what it offers for each of two operations', async () => {
  await fill(200, 200, 200, 200)
  const inner = await call(payers[4] as Keypair, 100)
  const resourceFee = resourceFeeOf(inner, 100)
  const sent = await network.server.sendTransaction(wrap(inner, sponsor, resourceFee + 400n))
  expect(codeOf(sent)).toBe('txInsufficientFee')
  expect(sent.errorResult?.feeCharged).toBe(resourceFee + 401n)
  const bump = wrap(inner, sponsor, resourceFee + 402n)
  expect(await send(bump)).toBe('PENDING')
  network.close()
  expect((await found(bump)).status).toBe('SUCCESS')
})

test('what waits for four ledgers is dropped and banned', async () => {
  const [, , waiting] = await fill(1000, 1000, 100, 1000)
  network.close()
  for (let ledger = 0; ledger < 3; ledger += 1) {
    const rest = await Promise.all([0, 1].map((index) => call(payers[index] as Keypair, 1000)))
    for (const transaction of rest) expect(await send(transaction)).toBe('PENDING')
    network.close()
  }
  expect((await found(waiting as Transaction)).status).toBe('NOT_FOUND')
  expect(await send(waiting as Transaction)).toBe('TRY_AGAIN_LATER')
})

test('two threads share the instructions of a ledger', async () => {
  const heavy = { writeBytes: 1000, instructions: 300_000_000 }
  const calls = await Promise.all(payers.slice(0, 3).map((payer) => call(payer, 100, heavy)))
  for (const transaction of calls) expect(await send(transaction)).toBe('PENDING')
  network.close()
  const statuses = await Promise.all(calls.map(async (one) => (await found(one)).status))
  // 580 million each: two of 300 million do not fit into one.
  expect(statuses.toSorted()).toEqual(['NOT_FOUND', 'SUCCESS', 'SUCCESS'])
})
