import { type Transaction, xdr } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import {
  codeOf,
  foundAccounts,
  hashOf,
  keypair,
  pay,
  perturb,
  resultCodes,
  shareNetwork,
  wrap,
} from './network-fixture.ts'

const network = shareNetwork()
const accounts = foundAccounts(network, 'payer', 'sponsor')

test('checks rate, source, signatures and balance of the outer envelope', async () => {
  const { payer, sponsor } = accounts
  const inner = await network.build(payer, pay())
  const unsigned = wrap(inner, sponsor, 200n)
  unsigned.signatures.length = 0
  const doubled = wrap(inner, sponsor, 200n)
  doubled.sign(sponsor)
  for (const [bump, code, feeCharged] of [
    [wrap(perturb(inner, { fee: 1000 }, payer), sponsor, 1999n), 'txInsufficientFee', 2000n],
    [wrap(inner, keypair('nobody'), 200n), 'txNoAccount', 200n],
    [unsigned, 'txBadAuth', 200n],
    [doubled, 'txBadAuthExtra', 200n],
    [wrap(inner, sponsor, 990_000_001n), 'txInsufficientBalance', 200n],
  ] as const) {
    const sent = await network.server.sendTransaction(bump)
    expect([codeOf(sent), sent.errorResult?.feeCharged]).toEqual([code, feeCharged])
  }
})

/** The inner transaction with one change. Its fee isn't checked, but everything else is. */
test.each<[string, (inner: Transaction) => Transaction, string]>([
  ['no signature', (inner) => perturb(inner, {}), 'txBadAuth'],
  ['an extra signature', (inner) => perturb(inner, {}, accounts.payer, accounts.sponsor), 'txBadAuthExtra'],
  ['no operation', (inner) => perturb(inner, { operations: [] }), 'txMissingOperation'],
])('rejects an inner transaction with %s', async (_name, change, code) => {
  const inner = change(await network.build(accounts.payer, pay()))
  const sent = await network.server.sendTransaction(wrap(inner, accounts.sponsor, 200n))
  expect(codeOf(sent)).toBe(`txFeeBumpInnerFailed ${code}`)
  const result = sent.errorResult?.result
  if (result?.type !== 'txFeeBumpInnerFailed') throw new Error('an inner failure')
  const { transactionHash, result: failure } = result.innerResultPair
  expect(Buffer.from(transactionHash.value).toString('hex')).toBe(hashOf(inner))
  expect(failure.feeCharged).toBe(0n)
})

test("charges the sponsor, uses the payer's sequence number, and finds the record by both hashes", async () => {
  const { payer, sponsor } = accounts
  // The inner transaction bids 0.
  const inner = perturb(await network.build(payer, pay('3')), { fee: 0 }, payer)
  const bump = wrap(inner, sponsor, 5000n)
  const before = await network.account(payer)
  expect((await network.find(bump)).status).toBe('NOT_FOUND')
  const outer = await network.settle(bump)
  if (outer.status !== 'SUCCESS') throw new Error(outer.status)
  // The bid above the base fee isn't charged: 100 for the operation, 100 for the fee bump.
  expect(outer.resultXdr.feeCharged).toBe(200n)
  expect(resultCodes(outer.resultXdr)).toEqual(['txFeeBumpInnerSuccess', 'txSuccess'])
  const after = await network.account(payer)
  expect(after).toMatchObject({ balance: before.balance - 30_000_000n, seqNum: before.seqNum + 1n })
  const paid = await network.account(sponsor)
  expect(paid).toMatchObject({ balance: 1_000_000_000n - 200n, ext: xdr.AccountEntryExt.v0() })
  const byInner = await network.find(inner)
  expect(byInner).toMatchObject({ status: 'SUCCESS', feeBump: true, txHash: hashOf(inner), ledger: outer.ledger })
  expect(byInner.status === 'SUCCESS' && byInner.envelopeXdr.toXdr('base64')).toBe(bump.toEnvelope().toXdr('base64'))
  const [fee] = outer.events.transactionEventsXdr
  expect(fee?.stage.name).toBe('transactionEventStageBeforeAllTxs')
})

test('charges the sponsor for a failed inner transaction', async () => {
  const outcome = await network.settle(
    wrap(await network.build(accounts.payer, pay('1000000')), accounts.sponsor, 200n),
  )
  if (outcome.status !== 'FAILED') throw new Error(outcome.status)
  expect(resultCodes(outcome.resultXdr)).toEqual(['txFeeBumpInnerFailed', 'txFailed', 'paymentUnderfunded'])
  expect(outcome.resultXdr.feeCharged).toBe(200n)
  expect((await network.account(accounts.payer)).balance).toBe(1_000_000_000n)
  expect((await network.account(accounts.sponsor)).balance).toBe(1_000_000_000n - 200n)
})
