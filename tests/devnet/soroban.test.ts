import {
  Address,
  Asset,
  Contract,
  type Keypair,
  Memo,
  nativeToScVal,
  Operation,
  SorobanDataBuilder,
  StrKey,
  scValToNative,
  type Transaction,
  xdr,
} from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { nonRefundableFee } from '#lib/devnet/transaction/fees.ts'
import {
  codeOf,
  keypair,
  openTestNetwork,
  passphrase,
  perturb,
  resultCodes,
  type TestNetwork,
  wrap,
} from './network-fixture.ts'

const NATIVE = Asset.native().contractId(passphrase)

let network: TestNetwork
let payer: Keypair
let payee: Keypair
let sponsor: Keypair
let count = 0

beforeAll(async () => {
  network = await openTestNetwork()
})
afterAll(() => network.stop())
beforeEach(async () => {
  count += 1
  payer = keypair(`payer ${count}`)
  payee = keypair(`payee ${count}`)
  sponsor = keypair(`sponsor ${count}`)
  await network.found(payer, payee, sponsor)
})

const callTransfer = (amount: bigint, to = payee.publicKey()) =>
  new Contract(NATIVE).call(
    'transfer',
    Address.fromString(payer.publicKey()).toScVal(),
    Address.fromString(to).toScVal(),
    nativeToScVal(amount, { type: 'i128' }),
  )

/** A simulated and signed transfer of XLM by contract call. */
async function prepare(operation = callTransfer(10_000_000n)): Promise<Transaction> {
  const prepared = await network.server.prepareTransaction(await network.draft(payer, [operation]))
  if ('feeSource' in prepared) throw new Error('not a plain transaction')
  prepared.sign(payer)
  return prepared
}

function sorobanData(transaction: Transaction): xdr.SorobanTransactionData {
  const envelope = transaction.toEnvelope()
  const ext = envelope.type === 'envelopeTypeTx' ? envelope.v1.tx.ext : undefined
  if (ext?.type !== 'sorobanData') throw new Error('no Soroban data')
  return ext.sorobanData
}

const withData = (
  transaction: Transaction,
  change: (builder: SorobanDataBuilder) => SorobanDataBuilder,
  ...signers: Keypair[]
) =>
  perturb(
    transaction,
    { ext: xdr.TransactionExt.sorobanData(change(new SorobanDataBuilder(sorobanData(transaction))).build()) },
    ...signers,
  )

/** What the inner envelope costs in every case, and what of R was used. */
async function expectCharge(transaction: Transaction, feeSource: Keypair, inclusion: bigint) {
  const { resources } = sorobanData(transaction)
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
    const full = inclusion + sorobanData(transaction).resourceFee
    expect(fees).toEqual(full > charged ? [full, charged - full] : [full])
    return ext.v1
  }
}

test('a plain contract call: base fee, what it used, and the rest of R back', async () => {
  const transaction = await prepare()
  const check = await expectCharge(transaction, payer, 100n)
  const outcome = await network.settle(transaction)
  expect(outcome.status).toBe('SUCCESS')
  const split = await check(outcome, 10_000_000n)
  expect(split.totalRefundableResourceFeeCharged).toBeGreaterThan(0n)
  expect((await network.account(payee)).balance).toBe(1_010_000_000n)
  if (outcome.status !== 'SUCCESS') return
  expect(outcome.returnValue?.type).toBe('scvVoid')
  const [events] = outcome.events.contractEventsXdr
  expect(events?.map(({ body }) => scValToNative(body.v0.topics[0] ?? xdr.ScVal.scvVoid()))).toEqual(['transfer'])
})

test('a sponsored call at twice the fee: the sponsor pays N + C + 200 and gets the rest back', async () => {
  const transaction = await prepare()
  const check = await expectCharge(transaction, sponsor, 200n)
  const bump = wrap(transaction, sponsor, 2n * BigInt(transaction.fee))
  const before = await network.account(payer)
  const outcome = await network.settle(bump)
  expect(outcome).toMatchObject({ status: 'SUCCESS', feeBump: true })
  await check(outcome)
  const after = await network.account(payer)
  expect(after.balance).toBe(before.balance - 10_000_000n)
  expect(after.seqNum).toBe(before.seqNum + 1n)
})

test('a call that fails costs N and nothing refundable', async () => {
  const transaction = await prepare()
  // The balance goes between simulation and application.
  const data = sorobanData(transaction)
  const poor = withOperation(transaction, callTransfer(99_999_999_999n), data)
  const check = await expectCharge(poor, sponsor, 200n)
  const outcome = await network.settle(wrap(poor, sponsor, 2n * BigInt(poor.fee)))
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFeeBumpInnerFailed', 'txFailed', 'invokeHostFunctionTrapped'])
  const split = await check(outcome)
  expect(split.totalRefundableResourceFeeCharged).toBe(0n)
  expect(outcome.diagnosticEventsXdr?.length).toBeGreaterThan(0)
  expect(outcome.events.contractEventsXdr).toEqual([])
  expect(outcome).toMatchObject({ returnValue: undefined })
})

test('declared resources are limits', async () => {
  const transaction = await prepare()
  const low = withData(transaction, (builder) => builder.setResources(1, 1000, 1000), payer)
  const outcome = await network.settle(low)
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFailed', 'invokeHostFunctionResourceLimitExceeded'])
})

test('a pool too small for rent and events', async () => {
  const transaction = await prepare()
  const fee = nonRefundableFee(sorobanData(transaction).resources, transaction.toEnvelope().toXdr().length)
  const tight = withData(transaction, (builder) => builder.setResourceFee(fee), payer)
  const outcome = await network.settle(tight)
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFailed', 'invokeHostFunctionInsufficientRefundableFee'])
  expect(outcome.resultXdr.feeCharged).toBe(fee + 100n)
})

type Change = (transaction: Transaction) => Transaction | Promise<Transaction>
const accountKey = (account: Keypair) =>
  xdr.LedgerKey.account(
    new xdr.LedgerKeyAccount({ accountId: xdr.PublicKey.publicKeyTypeEd25519(account.rawPublicKey()) }),
  )
const nativeLine = () =>
  xdr.LedgerKey.trustline(
    new xdr.LedgerKeyTrustLine({
      accountId: xdr.PublicKey.publicKeyTypeEd25519(payer.rawPublicKey()),
      asset: xdr.TrustLineAsset.assetTypeNative(),
    }),
  )
const dataKey = () =>
  xdr.LedgerKey.data(
    new xdr.LedgerKeyData({
      accountId: xdr.PublicKey.publicKeyTypeEd25519(payer.rawPublicKey()),
      dataName: 'x',
    }),
  )

/** One valid contract call, changed in one place, alone and inside a fee bump: [case, change, code, diagnostic]. */
const CASES: [string, Change, string, string?][] = [
  [
    'a memo',
    (tx) => perturb(tx, { memo: Memo.text('hi').toXdrObject() }, payer),
    'txSorobanInvalid',
    'Value InvalidInput',
  ],
  [
    'a muxed source',
    (tx) => perturb(tx, { sourceAccount: muxed(payer) }, payer),
    'txSorobanInvalid',
    'Value InvalidInput',
  ],
  ['no Soroban data', (tx) => perturb(tx, { ext: xdr.TransactionExt.v0() }, payer), 'txMalformed'],
  ['two operations', (tx) => perturb(tx, { operations: [callTransfer(1n), callTransfer(1n)] }, payer), 'txMalformed'],
  ['a payment beside it', (tx) => perturb(tx, { operations: [callTransfer(1n), bump()] }, payer), 'txMalformed'],
  ['a negative resource fee', (tx) => withData(tx, (data) => data.setResourceFee(-1), payer), 'txMalformed'],
  [
    'a resource fee below N',
    (tx) => withData(tx, (data) => data.setResourceFee(1000), payer),
    'txSorobanInvalid',
    'Storage ExceededLimit 1000',
  ],
  [
    'too many instructions',
    (tx) => withData(tx, (data) => data.setResources(400_000_001, 1000, 1000), payer),
    'txSorobanInvalid',
    'Budget ExceededLimit 400000001 400000000',
  ],
  [
    'a data entry in the footprint',
    (tx) => withData(tx, (data) => data.setReadOnly([dataKey()]), payer),
    'txSorobanInvalid',
    'Storage UnexpectedType 3',
  ],
  [
    'a native trust line',
    (tx) => withData(tx, (data) => data.setReadOnly([nativeLine()]), payer),
    'txSorobanInvalid',
    'Storage InvalidInput',
  ],
  [
    'a key twice',
    (tx) => withData(tx, (data) => data.setReadOnly([accountKey(payer)]), payer),
    'txSorobanInvalid',
    'Storage InvalidInput',
  ],
]

const bump = () => Operation.bumpSequence({ bumpTo: '1' })
const muxed = (account: Keypair) =>
  xdr.MuxedAccount.keyTypeMuxedEd25519(
    new xdr.MuxedAccountMed25519({ id: 7n, ed25519: StrKey.decodeEd25519PublicKey(account.publicKey()) }),
  )

test.each(CASES)('%s', async (_name, change, code, diagnostic) => {
  const bad = await change(await prepare())
  const alone = await network.server.sendTransaction(bad)
  expect(codeOf(alone)).toBe(code)
  expect(describeDiagnostic(alone.diagnosticEvents?.[0])).toMatch(new RegExp(`^${diagnostic ?? 'none'}`))
  const wrapped = await network.server.sendTransaction(wrap(bad, sponsor, 10_000_000n))
  const outer = bad.toEnvelope()
  const isShapeless = outer.type === 'envelopeTypeTx' && !hasFee(outer.v1.tx)
  expect(codeOf(wrapped)).toBe(isShapeless ? code : `txFeeBumpInnerFailed ${code}`)
})

/** The error of a diagnostic event and the numbers beside its text: `Budget ExceededLimit 7 5`. */
function describeDiagnostic(event: xdr.DiagnosticEvent | undefined): string {
  const [, error] = event?.event.body.v0.topics ?? []
  if (error?.type !== 'scvError' || error.error.type === 'sceContract') return 'none'
  const told = scValToNative(event?.event.body.v0.data ?? xdr.ScVal.scvVoid())
  const [text, ...values] = Array.isArray(told) ? told : [told]
  expect(text).toMatch(/transaction|Soroban/)
  return [error.error.type.slice('sce'.length), error.error.code.name.slice('scec'.length), ...values].join(' ')
}

function hasFee({ ext }: xdr.Transaction): boolean {
  return ext.type === 'sorobanData' && ext.sorobanData.resourceFee >= 0n
}

test('R above the fee: malformed alone, fine inside a fee bump', async () => {
  const transaction = perturb(await prepare(), { fee: 100 }, payer)
  expect(codeOf(await network.server.sendTransaction(transaction))).toBe('txMalformed')
  const fee = sorobanData(transaction).resourceFee + 200n
  expect((await network.settle(wrap(transaction, sponsor, fee))).status).toBe('SUCCESS')
})

test('a fee source of a pending contract call counts as taken for the classic queue', async () => {
  const transaction = await prepare()
  expect(codeOf(await network.server.sendTransaction(wrap(transaction, sponsor, 10_000_000n)))).toBe('PENDING')
  const classic = await network.build(sponsor, bump())
  expect(codeOf(await network.server.sendTransaction(classic))).toBe('TRY_AGAIN_LATER')
  network.close()
  expect((await network.settle(classic)).status).toBe('SUCCESS')
})

test('classic transactions come before contract calls', async () => {
  const call = await prepare()
  const rest = Operation.payment({ destination: sponsor.publicKey(), asset: Asset.native(), amount: '1' })
  const classic = await network.build(payee, rest)
  for (const transaction of [call, classic]) {
    expect(codeOf(await network.server.sendTransaction(transaction))).toBe('PENDING')
  }
  network.close()
  const order = async (transaction: Transaction) =>
    await network.server.getTransaction(Buffer.from(transaction.hash()).toString('hex'))
  expect(await order(classic)).toMatchObject({ status: 'SUCCESS', applicationOrder: 1 })
  expect(await order(call)).toMatchObject({ status: 'SUCCESS', applicationOrder: 2 })
})

function withOperation(
  transaction: Transaction,
  operation: xdr.Operation,
  data: xdr.SorobanTransactionData,
): Transaction {
  const body = operation.body
  if (body.type !== 'invokeHostFunction') throw new Error('a contract call')
  const envelope = transaction.toEnvelope()
  const [simulated] = envelope.type === 'envelopeTypeTx' ? envelope.v1.tx.operations : []
  if (simulated?.body.type !== 'invokeHostFunction') throw new Error('a contract call')
  const { hostFunction } = body.invokeHostFunctionOp
  const auth = simulated.body.invokeHostFunctionOp.auth.map(
    (entry) =>
      new xdr.SorobanAuthorizationEntry({
        ...entry,
        rootInvocation: new xdr.SorobanAuthorizedInvocation({
          ...entry.rootInvocation,
          function: authorised(hostFunction),
        }),
      }),
  )
  const call = xdr.OperationBody.invokeHostFunction(new xdr.InvokeHostFunctionOp({ hostFunction, auth }))
  const operations = [new xdr.Operation({ sourceAccount: null, body: call })]
  return perturb(transaction, { operations, ext: xdr.TransactionExt.sorobanData(data) }, payer)
}

function authorised(hostFunction: xdr.HostFunction): xdr.SorobanAuthorizedFunction {
  if (hostFunction.type !== 'hostFunctionTypeInvokeContract') throw new Error('a contract call')
  return xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(hostFunction.invokeContract)
}
