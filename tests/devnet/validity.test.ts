import { Operation, SorobanDataBuilder, Transaction, xdr } from '@stellar/stellar-sdk'
import { beforeAll, expect, test } from 'vitest'
import { codeOf, keypair, pay, perturb, shareNetwork } from './network-fixture.ts'

const payer = keypair('payer')
const payee = keypair('payee')
const stranger = keypair('stranger')
const network = shareNetwork()
let valid: Transaction

beforeAll(async () => {
  await network.createAccounts(payer, payee)
  valid = await network.build(payer, pay())
})

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
const extraSigners = (...signers: (typeof payer)[]): Fields =>
  conditions({ extraSigners: signers.map((key) => xdr.SignerKey.signerKeyTypeEd25519(key.rawPublicKey())) })
const doing = (...operations: xdr.Operation[]): Fields => ({ operations })
const data = () => xdr.TransactionExt.sorobanData(new SorobanDataBuilder().setResourceFee(1).build())
const withAmount = (amount: bigint) => {
  const destination = xdr.MuxedAccount.keyTypeEd25519(payee.rawPublicKey())
  const payment = new xdr.PaymentOp({ destination, asset: xdr.Asset.assetTypeNative(), amount })
  return new xdr.Operation({ sourceAccount: null, body: xdr.OperationBody.payment(payment) })
}

/** One valid transaction with one change: [case, change, code, fee charged]. The next ledger is number 3. */
const CASES: [string, () => Fields, string, bigint?][] = [
  ['no operation', () => doing(), 'txMissingOperation'],
  ['Soroban data on a payment', () => ({ ext: data() }), 'txMalformed'],
  ['minLedger after the next', () => ledgerBounds(4, 0), 'txTooEarly'],
  ['maxLedger at the next', () => ledgerBounds(0, 3), 'txTooLate'],
  ['two operations with the fee of one', () => doing(pay(), pay()), 'txInsufficientFee', 200n],
  ['a ledger’s own sequence number', () => ({ seqNum: 3n << 32n, ...conditions({ minSeqNum: 0n }) }), 'txBadSeq'],
  ['minSeqNum above the account', () => conditions({ minSeqNum: (2n << 32n) + 1n }), 'txBadSeq'],
  ['minSeqAge', () => conditions({ minSeqAge: 2_000_000_000n }), 'txBadMinSeqAgeOrGap'],
  ['minSeqLedgerGap', () => conditions({ minSeqLedgerGap: 4 }), 'txBadMinSeqAgeOrGap'],
  ['extra signer who did not sign', () => extraSigners(stranger), 'txBadAuth'],
  ['a duplicate extra signer', () => extraSigners(payer, payer), 'txMalformed'],
  ['fee above the available balance', () => ({ fee: 990_000_001 }), 'txInsufficientBalance'],
  ['operation of another source', () => doing(pay('1', payee)), 'txFailed opBadAuth'],
  ['unknown operation source', () => doing(pay('1', stranger)), 'txFailed opBadAuth'],
  ['malformed operation', () => doing(withAmount(0n)), 'txFailed paymentMalformed'],
  [
    'unsupported operation',
    () => doing(Operation.accountMerge({ destination: payee.publicKey() })),
    'txFailed opNotSupported',
  ],
]

test.each(CASES)('%s', async (_name, change, code, feeCharged = 100n) => {
  const sent = await network.server.sendTransaction(perturb(valid, change(), payer))
  expect(sent.status).toBe('ERROR')
  expect(codeOf(sent)).toBe(code)
  expect(sent.errorResult?.feeCharged).toBe(feeCharged)
})

test('reports only the first invalid operation', async () => {
  const operations = [pay(), withAmount(-1n), withAmount(-2n)]
  const sent = await network.server.sendTransaction(perturb(valid, { operations, fee: 300 }, payer))
  const result = sent.errorResult?.result
  const types =
    result?.type === 'txFailed' ? result.results.map((one) => one.type === 'opInner' && one.tr.value.type) : []
  expect(types).toEqual(['paymentSuccess', 'paymentMalformed', 'paymentSuccess'])
  expect(sent.errorResult?.feeCharged).toBe(300n)
})

test('accepts a fee equal to the available balance', async () => {
  expect(await network.send(perturb(await network.build(payee, pay()), { fee: 990_000_000 }, payee))).toBe('PENDING')
})

test('rejects an undecodable transaction as an invalid parameter', async () => {
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

test('treats a V0 envelope as V1', async () => {
  const next = await network.build(payer, pay('2'))
  const envelope = next.toEnvelope()
  if (envelope.type !== 'envelopeTypeTx') throw new Error('a V1 envelope')
  const { tx } = envelope.v1
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
