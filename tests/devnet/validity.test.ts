import { Asset, type Keypair, Operation, SorobanDataBuilder, Transaction, xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeOf, keypair, openTestNetwork, perturb, type TestNetwork } from './network-fixture.ts'

const payer = keypair('payer')
const payee = keypair('payee')
const stranger = keypair('stranger')

let network: TestNetwork
let valid: Transaction

beforeAll(async () => {
  network = await openTestNetwork()
  await network.found(payer, payee)
  valid = await network.build(payer, pay('1'))
})
afterAll(() => network.stop())

function pay(amount: string, source?: Keypair) {
  const from = source ? { source: source.publicKey() } : {}
  return Operation.payment({ destination: payee.publicKey(), asset: Asset.native(), amount, ...from })
}

type Fields = Parameters<typeof perturb>[1]

const conditions = (fields: Partial<ConstructorParameters<typeof xdr.PreconditionsV2>[0]>): Fields => ({
  cond: xdr.Preconditions.precondV2(
    new xdr.PreconditionsV2({
      timeBounds: null,
      ledgerBounds: null,
      minSeqNum: null,
      minSeqAge: 0n,
      minSeqLedgerGap: 0,
      extraSigners: [],
      ...fields,
    }),
  ),
})
const ledgerBounds = (minLedger: number, maxLedger: number): Fields =>
  conditions({ ledgerBounds: new xdr.LedgerBounds({ minLedger, maxLedger }) })
const xdrOf = (operation: xdr.Operation): xdr.Operation[] => [operation]
const signerKey = (signer: Keypair) => xdr.SignerKey.signerKeyTypeEd25519(signer.rawPublicKey())
const data = () => new SorobanDataBuilder().setResourceFee(1).build()

/** One valid transaction, changed in one place: [case, change, code, fee charged]. The next ledger is number 3. */
const CASES: [string, () => Fields, string, bigint][] = [
  ['no operation', () => ({ operations: [] }), 'txMissingOperation', 100n],
  ['Soroban data on a payment', () => ({ ext: xdr.TransactionExt.sorobanData(data()) }), 'txMalformed', 0n],
  ['minLedger after the next', () => ledgerBounds(4, 0), 'txTooEarly', 100n],
  ['maxLedger at the next', () => ledgerBounds(0, 3), 'txTooLate', 100n],
  ['two operations at the fee of one', () => ({ operations: [pay('1'), pay('1')] }), 'txInsufficientFee', 200n],
  [
    'sequence number of the ledger itself',
    () => ({ seqNum: 3n << 32n, ...conditions({ minSeqNum: 0n }) }),
    'txBadSeq',
    100n,
  ],
  ['minSeqNum above the account', () => conditions({ minSeqNum: (2n << 32n) + 1n }), 'txBadSeq', 100n],
  ['minSeqAge', () => conditions({ minSeqAge: 2_000_000_000n }), 'txBadMinSeqAgeOrGap', 100n],
  ['minSeqLedgerGap', () => conditions({ minSeqLedgerGap: 4 }), 'txBadMinSeqAgeOrGap', 100n],
  ['extra signer who did not sign', () => conditions({ extraSigners: [signerKey(stranger)] }), 'txBadAuth', 100n],
  [
    'the same extra signer twice',
    () => conditions({ extraSigners: [signerKey(payer), signerKey(payer)] }),
    'txMalformed',
    0n,
  ],
  ['fee above the available balance', () => ({ fee: 990_000_001 }), 'txInsufficientBalance', 100n],
  ['operation of another source', () => ({ operations: xdrOf(pay('1', payee)) }), 'txFailed opBadAuth', 100n],
  ['unknown operation source', () => ({ operations: xdrOf(pay('1', stranger)) }), 'txFailed opBadAuth', 100n],
  ['malformed operation', () => ({ operations: xdrOf(withAmount(0n)) }), 'txFailed paymentMalformed', 100n],
  [
    'unsupported operation',
    () => ({ operations: xdrOf(Operation.accountMerge({ destination: payee.publicKey() })) }),
    'txFailed opNotSupported',
    100n,
  ],
]

const muxed = (account: Keypair) => xdr.MuxedAccount.keyTypeEd25519(account.rawPublicKey())
const withAmount = (amount: bigint) =>
  new xdr.Operation({
    sourceAccount: null,
    body: xdr.OperationBody.payment(
      new xdr.PaymentOp({ destination: muxed(payee), asset: xdr.Asset.assetTypeNative(), amount }),
    ),
  })

test.each(CASES)('%s', async (_name, change, code, feeCharged) => {
  const sent = await network.server.sendTransaction(perturb(valid, change(), payer))
  expect(sent.status).toBe('ERROR')
  expect(codeOf(sent)).toBe(code)
  expect(sent.errorResult?.feeCharged).toBe(feeCharged)
})

test('only the first bad operation is filled in', async () => {
  const operations = [pay('1'), withAmount(-1n), withAmount(-2n)]
  const sent = await network.server.sendTransaction(perturb(valid, { operations, fee: 300 }, payer))
  const result = sent.errorResult?.result
  const types =
    result?.type === 'txFailed' ? result.results.map((one) => one.type === 'opInner' && one.tr.value.type) : []
  expect(types).toEqual(['paymentSuccess', 'paymentMalformed', 'paymentSuccess'])
  expect(sent.errorResult?.feeCharged).toBe(300n)
})

test('no signature, a foreign one, and one too many', async () => {
  const { server } = network
  expect(codeOf(await server.sendTransaction(perturb(valid, {})))).toBe('txBadAuth')
  expect(codeOf(await server.sendTransaction(perturb(valid, {}, stranger)))).toBe('txBadAuth')
  expect(codeOf(await server.sendTransaction(perturb(valid, {}, payer, stranger)))).toBe('txBadAuthExtra')
  expect(codeOf(await server.sendTransaction(perturb(valid, {}, payer, payer)))).toBe('txBadAuthExtra')
})

test('a fee of the whole available balance is taken on', async () => {
  const own = await openTestNetwork()
  await own.found(payer, payee)
  const sent = await own.server.sendTransaction(perturb(await own.build(payer, pay('1')), { fee: 990_000_000 }, payer))
  expect(sent.status).toBe('PENDING')
  await own.stop()
})

test('what cannot be decoded is an invalid parameter', async () => {
  const send = (transaction: string) =>
    fetch(network.devnet.rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sendTransaction', params: { transaction } }),
    }).then((response) => response.json())
  const envelope = valid.toEnvelope().toXdr('base64')
  for (const bad of ['', 'AAAA', envelope.slice(4), `${envelope}AAAA`, '\u{1F600}']) {
    expect(await send(bad)).toMatchObject({ error: { code: -32602, message: 'invalid_xdr' } })
  }
})

test('a V0 envelope is taken as V1', async () => {
  const next = await network.build(payer, pay('2'))
  const { tx } = v1Of(next)
  const v0 = new xdr.TransactionV0({
    sourceAccountEd25519: payer.rawPublicKey(),
    fee: tx.fee,
    seqNum: tx.seqNum,
    timeBounds: new xdr.TimeBounds({ minTime: 0n, maxTime: 0n }),
    memo: tx.memo,
    operations: tx.operations,
    ext: xdr.TransactionV0Ext.v0(),
  })
  const unsigned = xdr.TransactionEnvelope.envelopeTypeTxV0(new xdr.TransactionV0Envelope({ tx: v0, signatures: [] }))
  const old = new Transaction(unsigned.toXdr('base64'), network.devnet.deployment.passphrase)
  old.sign(payer)
  const outcome = await network.settle(old)
  expect(outcome.status).toBe('SUCCESS')
  expect(outcome.status === 'SUCCESS' && outcome.envelopeXdr.type).toBe('envelopeTypeTx')
})

function v1Of(transaction: Transaction): xdr.TransactionV1Envelope {
  const envelope = transaction.toEnvelope()
  if (envelope.type !== 'envelopeTypeTx') throw new Error('a V1 envelope')
  return envelope.v1
}
