import { type Keypair, Memo, Operation, scValToNative, type Transaction, xdr } from '@stellar/stellar-sdk'
import { beforeEach, expect, test } from 'vitest'
import { nonRefundableFee } from '#lib/devnet/transaction/fees.ts'
import {
  callTransfer,
  codeOf,
  declare,
  foundAccounts,
  pay,
  perturb,
  resultCodes,
  shareNetwork,
  sorobanDataOf,
  type TestNetwork,
  wrap,
} from './network-fixture.ts'

const network = shareNetwork()
const accounts = foundAccounts(network, 'payer', 'payee', 'sponsor')
let payer: Keypair
let payee: Keypair
let sponsor: Keypair
beforeEach(() => {
  ;({ payer, payee, sponsor } = accounts)
})

/** A simulated and signed transfer of XLM by contract call. */
async function prepare(amount = 10_000_000n): Promise<Transaction> {
  const prepared = await network.prepare(payer, callTransfer(payer, payee, amount))
  prepared.sign(payer)
  return prepared
}

/** Expects the inner envelope's fixed charge and the used part of R. */
async function expectCharge(transaction: Transaction, feeSource: Keypair, inclusion: bigint) {
  const { resources, resourceFee } = sorobanDataOf(transaction)
  const size = transaction.toEnvelope().toXdr().length
  const before = await network.account(feeSource)
  return async (outcome: Awaited<ReturnType<TestNetwork['settle']>>, moved = 0n) => {
    if (outcome.status === 'NOT_FOUND' || outcome.resultMetaXdr.type !== 'v4') throw new Error('not in the ledger')
    const ext = outcome.resultMetaXdr.v4.sorobanMeta?.ext
    if (ext?.type !== 'v1') throw new Error('no fee split')
    const nonRefundable = nonRefundableFee(resources, size)
    expect(ext.v1.totalNonRefundableResourceFeeCharged).toBe(nonRefundable)
    const charged = inclusion + nonRefundable + ext.v1.totalRefundableResourceFeeCharged
    expect(outcome.resultXdr.feeCharged).toBe(charged)
    expect((await network.account(feeSource)).balance).toBe(before.balance - charged - moved)
    const fees = outcome.events.transactionEventsXdr.map(({ event }) => scValToNative(event.body.v0.data))
    const full = inclusion + resourceFee
    expect(fees).toEqual(full > charged ? [full, charged - full] : [full])
    return ext.v1.totalRefundableResourceFeeCharged
  }
}

test('charges a plain call its base fee and used resources and refunds the rest', async () => {
  const transaction = await prepare()
  const check = await expectCharge(transaction, payer, 100n)
  const outcome = await network.settle(transaction)
  if (outcome.status !== 'SUCCESS') throw new Error(outcome.status)
  expect(await check(outcome, 10_000_000n)).toBeGreaterThan(0n)
  expect((await network.account(payee)).balance).toBe(1_010_000_000n)
  expect(outcome.returnValue?.type).toBe('scvVoid')
  const [events] = outcome.events.contractEventsXdr
  expect(events?.map(({ body }) => scValToNative(body.v0.topics[0] ?? xdr.ScVal.scvVoid()))).toEqual(['transfer'])
})

test('charges a sponsored call N + C + 200 and refunds the rest to the sponsor', async () => {
  const transaction = await prepare()
  const check = await expectCharge(transaction, sponsor, 200n)
  const before = await network.account(payer)
  const outcome = await network.settle(wrap(transaction, sponsor, 2n * BigInt(transaction.fee)))
  expect(outcome).toMatchObject({ status: 'SUCCESS', feeBump: true })
  await check(outcome)
  const after = await network.account(payer)
  expect(after).toMatchObject({ balance: before.balance - 10_000_000n, seqNum: before.seqNum + 1n })
})

test('charges a failed call only the non-refundable fee', async () => {
  const prepared = await prepare(600_000_000n)
  // The balance is spent between simulation and application.
  expect((await network.settle(await network.build(payer, pay('60')))).status).toBe('SUCCESS')
  const poor = perturb(prepared, { seqNum: BigInt(prepared.sequence) + 1n }, payer)
  const check = await expectCharge(poor, sponsor, 200n)
  const outcome = await network.settle(wrap(poor, sponsor, 2n * BigInt(poor.fee)))
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFeeBumpInnerFailed', 'txFailed', 'invokeHostFunctionTrapped'])
  expect(await check(outcome)).toBe(0n)
  expect(outcome.diagnosticEventsXdr?.length).toBeGreaterThan(0)
  expect(outcome.events.contractEventsXdr).toEqual([])
  expect(outcome).toMatchObject({ returnValue: undefined })
})

test('fails a call that exceeds its declared resources', async () => {
  const low = declare(await prepare(), (data) => data.setResources(1, 1000, 1000), {}, payer)
  const outcome = await network.settle(low)
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFailed', 'invokeHostFunctionResourceLimitExceeded'])
})

test('fails a call whose refundable fee does not cover rent and events', async () => {
  const transaction = await prepare()
  const fee = nonRefundableFee(sorobanDataOf(transaction).resources, transaction.toEnvelope().toXdr().length)
  const outcome = await network.settle(declare(transaction, (data) => data.setResourceFee(fee), {}, payer))
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFailed', 'invokeHostFunctionInsufficientRefundableFee'])
  expect(outcome.resultXdr.feeCharged).toBe(fee + 100n)
})

const muxed = () =>
  xdr.MuxedAccount.keyTypeMuxedEd25519(new xdr.MuxedAccountMed25519({ id: 7n, ed25519: payer.rawPublicKey() }))
const bump = () => Operation.bumpSequence({ bumpTo: '1' })
const call = () => callTransfer(payer, payee, 1n)

/** One valid contract call with one change, alone and inside a fee bump: [case, change, code, code inside]. */
const CASES: [string, (valid: Transaction) => Transaction, string, string?][] = [
  ['a memo', (valid) => perturb(valid, { memo: Memo.text('hi').toXdrObject() }, payer), 'txSorobanInvalid'],
  ['a muxed source', (valid) => perturb(valid, { sourceAccount: muxed() }, payer), 'txSorobanInvalid'],
  ['no Soroban data', (valid) => perturb(valid, { ext: xdr.TransactionExt.v0() }, payer), 'txMalformed', 'txMalformed'],
  ['two operations', (valid) => perturb(valid, { operations: [call(), call()] }, payer), 'txMalformed'],
  ['an additional payment', (valid) => perturb(valid, { operations: [call(), bump()] }, payer), 'txMalformed'],
  [
    'a negative resource fee',
    (valid) => declare(valid, (data) => data.setResourceFee(-1), {}, payer),
    'txMalformed',
    'txMalformed',
  ],
]
test.each(CASES)('%s', async (_name, change, code, inside = `txFeeBumpInnerFailed ${code}`) => {
  const bad = change(await prepare())
  const alone = await network.server.sendTransaction(bad)
  expect(codeOf(alone)).toBe(code)
  const diagnostics = alone.diagnosticEvents?.map(({ event }) => String(scValToNative(event.body.v0.data)))
  expect(diagnostics?.join() ?? '').toContain(code === 'txSorobanInvalid' ? 'not allowed to use memo or muxed' : '')
  expect(await network.send(wrap(bad, sponsor, 10_000_000n))).toBe(inside)
})

test('accepts a resource fee above the inner fee only inside a fee bump', async () => {
  const transaction = perturb(await prepare(), { fee: 100 }, payer)
  expect(await network.send(transaction)).toBe('txMalformed')
  const fee = sorobanDataOf(transaction).resourceFee + 200n
  expect((await network.settle(wrap(transaction, sponsor, fee))).status).toBe('SUCCESS')
})

test('excludes the fee source of a pending call from the classic queue', async () => {
  expect(await network.send(wrap(await prepare(), sponsor, 10_000_000n))).toBe('PENDING')
  const classic = await network.build(sponsor, bump())
  expect(await network.send(classic)).toBe('TRY_AGAIN_LATER')
  network.close()
  expect((await network.settle(classic)).status).toBe('SUCCESS')
})

test('applies classic transactions before contract calls', async () => {
  const transactions = [await prepare(), await network.build(payee, pay())] as const
  for (const transaction of transactions) expect(await network.send(transaction)).toBe('PENDING')
  network.close()
  expect(await network.find(transactions[0])).toMatchObject({ status: 'SUCCESS', applicationOrder: 2 })
  expect(await network.find(transactions[1])).toMatchObject({ status: 'SUCCESS', applicationOrder: 1 })
})
