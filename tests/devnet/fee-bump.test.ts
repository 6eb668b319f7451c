import { Asset, type Keypair, Operation, type Transaction } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  codeOf,
  keypair,
  openTestNetwork,
  perturb,
  resultCodes,
  root,
  type TestNetwork,
  wrap,
} from './network-fixture.ts'

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
const hashOf = (transaction: { hash(): Uint8Array }) => Buffer.from(transaction.hash()).toString('hex')

async function refusal(
  make: () => Promise<Parameters<TestNetwork['settle']>[0]>,
): Promise<[string, bigint | undefined]> {
  const sent = await network.server.sendTransaction(await make())
  expect(sent.status).toBe('ERROR')
  return [codeOf(sent), sent.errorResult?.feeCharged]
}

test('the outer envelope: fee, rate, source, signatures, balance', async () => {
  const inner = await network.build(payer, pay())
  const dearer = perturb(inner, { fee: 1000 }, payer)
  const wrong = wrap(inner, sponsor, 200n)
  const doubled = wrap(inner, sponsor, 200n)
  doubled.sign(sponsor)
  wrong.signatures.length = 0
  expect(await refusal(async () => wrap(inner, sponsor, 199n))).toEqual(['txInsufficientFee', 200n])
  expect(await refusal(async () => wrap(dearer, sponsor, 1999n))).toEqual(['txInsufficientFee', 2000n])
  expect(await refusal(async () => wrap(inner, keypair('nobody'), 200n))).toEqual(['txNoAccount', 200n])
  expect(await refusal(async () => wrong)).toEqual(['txBadAuth', 200n])
  expect(await refusal(async () => doubled)).toEqual(['txBadAuthExtra', 200n])
  expect(await refusal(async () => wrap(inner, sponsor, 990_000_001n))).toEqual(['txInsufficientBalance', 200n])
})

/** The inner transaction, changed in one place: its fee is not checked, everything else is. */
test.each([
  ['used sequence number', (inner: Transaction) => perturb(inner, { seqNum: 1n }, payer), 'txBadSeq'],
  ['no signature', (inner: Transaction) => perturb(inner, {}), 'txBadAuth'],
  ['one signature too many', (inner: Transaction) => perturb(inner, {}, payer, sponsor), 'txBadAuthExtra'],
  ['no operation', (inner: Transaction) => perturb(inner, { operations: [] }), 'txMissingOperation'],
])('inner with %s', async (_name, change, code) => {
  const inner = await network.build(payer, pay())
  const sent = await network.server.sendTransaction(wrap(change(inner), sponsor, 200n))
  expect(codeOf(sent)).toBe(`txFeeBumpInnerFailed ${code}`)
  const result = sent.errorResult?.result
  if (result?.type !== 'txFeeBumpInnerFailed') throw new Error('an inner failure')
  expect(Buffer.from(result.innerResultPair.transactionHash.value)).toEqual(Buffer.from(change(inner).hash()))
  expect(result.innerResultPair.result.feeCharged).toBe(0n)
})

test('an inner that offers no fee at all is fine', async () => {
  const inner = perturb(await network.build(payer, pay()), { fee: 0 }, payer)
  const outcome = await network.settle(wrap(inner, sponsor, 200n))
  expect(outcome.status).toBe('SUCCESS')
})

test('the sponsor pays, the payer uses its number, and both hashes find the same record', async () => {
  const inner = await network.build(payer, pay('3'))
  const bump = wrap(inner, sponsor, 5000n)
  const before = await network.account(payer)
  expect((await network.server.getTransaction(hashOf(bump))).status).toBe('NOT_FOUND')
  const outer = await network.settle(bump)
  if (outer.status !== 'SUCCESS') throw new Error(outer.status)
  // The bid above the base fee is not taken: 100 for the operation, 100 for the fee bump.
  expect(outer.resultXdr.feeCharged).toBe(200n)
  expect(resultCodes(outer.resultXdr)).toEqual(['txFeeBumpInnerSuccess', 'txSuccess'])
  const after = await network.account(payer)
  expect(after.balance).toBe(before.balance - 30_000_000n)
  expect(after.seqNum).toBe(before.seqNum + 1n)
  const paid = await network.account(sponsor)
  expect(paid.balance).toBe(1_000_000_000n - 200n)
  expect(paid.ext.type).toBe('v0')
  const byInner = await network.server.getTransaction(hashOf(inner))
  expect(byInner).toMatchObject({ status: 'SUCCESS', feeBump: true, txHash: hashOf(inner), ledger: outer.ledger })
  expect(byInner.status === 'SUCCESS' && byInner.envelopeXdr.toXdr('base64')).toBe(bump.toEnvelope().toXdr('base64'))
  const [fee] = outer.events.transactionEventsXdr
  expect(fee?.stage.name).toBe('transactionEventStageBeforeAllTxs')
})

test('a failed inner costs the sponsor all the same', async () => {
  const inner = await network.build(payer, pay('1000000'))
  const outcome = await network.settle(wrap(inner, sponsor, 200n))
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFeeBumpInnerFailed', 'txFailed', 'paymentUnderfunded'])
  expect(outcome.resultXdr.feeCharged).toBe(200n)
  expect((await network.account(payer)).balance).toBe(1_000_000_000n)
  expect((await network.account(sponsor)).balance).toBe(1_000_000_000n - 200n)
})
