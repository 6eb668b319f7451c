import { xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { readRecord } from '#lib/transfers/decide.ts'
import { wrapInFeeBump } from '#lib/transfers/fee-bump.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { PASSPHRASE, signedTransfer, sponsor, stranger } from '../support/inner-transaction.ts'
import { bareResult, diagnosticEvent, errorEvent, feeBumpResult, plainResult } from './ledger-answers.ts'
import { expectUnavailable } from './refused.ts'

const signedXDR = signedTransfer()
const inner = decodeInner(signedXDR, PASSPHRASE)
const innerHash = inner.hashHex
const bump = wrapInFeeBump(inner, sponsor, PASSPHRASE)
const outerHash = bump.hash
let proxy: FaultProxy
let network: Network

beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 50 })
})
afterAll(() => proxy.close())

describe('lookUp', () => {
  const unknown = { status: 'NOT_FOUND', latestLedger: 9, latestLedgerCloseTime: '1777636800', oldestLedger: 2 }
  const known = {
    ...unknown,
    status: 'SUCCESS',
    ledger: 8,
    createdAt: '1777636790',
    envelopeXdr: 'not decoded here',
    resultXdr: plainResult('success'),
  }

  test('asks for the hash and reads a close time in digits, as the RPC writes it, or as a number', async () => {
    let asked: unknown
    proxy.rule(({ method, params }) => {
      asked = { method, params }
      return { answer: unknown }
    })
    const answer = { ...unknown, latestLedgerCloseTime: 1_777_636_800 }
    expect(await lookUp(network, outerHash)).toEqual(answer)
    expect(asked).toEqual({ method: 'getTransaction', params: { hash: outerHash } })
    proxy.rule(() => ({ answer }))
    expect(await lookUp(network, outerHash)).toEqual(answer)
  })

  test.each(['SUCCESS', 'FAILED'])('%s', async (status) => {
    proxy.rule(() => ({ answer: { ...known, status, txHash: 'not looked at' } }))
    const times = { createdAt: 1_777_636_790, latestLedgerCloseTime: 1_777_636_800 }
    expect(await lookUp(network, outerHash)).toEqual({ ...known, ...times, status })
  })

  const nonsense: [string, Fault][] = [
    ['a JSON-RPC error', { error: { code: -32603, message: 'internal error' } }],
    ['a 500', { status: 500 }],
    ['a 404', { status: 404 }],
    ['a connection that drops', { drop: true, delivered: false }],
    ['an empty result', { answer: {} }],
    ['a status that is not one', { answer: { ...unknown, status: 'PENDING' } }],
    ['no status', { answer: { ...known, status: undefined } }],
    ['not found, without a close time', { answer: { ...unknown, latestLedgerCloseTime: undefined } }],
    ['not found, with a close time in words', { answer: { ...unknown, latestLedgerCloseTime: 'yesterday' } }],
    ['not found, with an empty close time', { answer: { ...unknown, latestLedgerCloseTime: '' } }],
    ['not found, with a close time below 0', { answer: { ...unknown, latestLedgerCloseTime: '-1' } }],
    ['not found, without the oldest ledger', { answer: { ...unknown, oldestLedger: undefined } }],
    ['not found, with a ledger in digits', { answer: { ...unknown, latestLedger: '9' } }],
    ['found, without a result', { answer: { ...known, resultXdr: undefined } }],
    ['found, with a result that is no text', { answer: { ...known, resultXdr: 7 } }],
    ['found, without its envelope', { answer: { ...known, envelopeXdr: undefined } }],
    ['found, without the time of its ledger', { answer: { ...known, createdAt: undefined } }],
    ['found, without the oldest ledger', { answer: { ...known, oldestLedger: undefined } }],
    ['found, without a ledger', { answer: { ...known, ledger: undefined } }],
    ['found, with a fraction of a ledger', { answer: { ...known, ledger: 8.5 } }],
    ['found, with diagnostic events that are no list', { answer: { ...known, diagnosticEventsXdr: 'none' } }],
    ['silence', { hang: true, delivered: false }],
  ]
  test.each(nonsense)('rejects a response with %s', async (_, fault) => {
    proxy.rule(() => fault)
    await expectUnavailable(() => lookUp(network, outerHash))
  })
})

describe('readRecord', () => {
  const found = (
    status: 'SUCCESS' | 'FAILED',
    resultXdr: string,
    { envelopeXdr = bump.envelope, diagnosticEventsXdr }: { envelopeXdr?: string; diagnosticEventsXdr?: string[] } = {},
  ) => ({
    status,
    ledger: 8,
    createdAt: 1_777_636_790,
    envelopeXdr,
    resultXdr,
    ...(diagnosticEventsXdr ? { diagnosticEventsXdr } : {}),
  })
  const alone = { envelopeXdr: signedXDR }
  const foreignBump = wrapInFeeBump(inner, stranger, PASSPHRASE)
  const foreign = { envelopeXdr: foreignBump.envelope }
  const expected = { innerHash, sponsor: sponsor.publicKey(), passphrase: PASSPHRASE }
  const place = { applied: innerHash, ledger: 8, closedAt: 1_777_636_790, contractError: null }

  test('reads a successful fee bump of the service', () => {
    expect(readRecord(found('SUCCESS', feeBumpResult(innerHash, 'success')), expected)).toEqual({
      ...place,
      succeeded: true,
      consumed: true,
      hash: outerHash,
      outerHash,
      feeCharged: 87_654n,
      resultCode: 'txSuccess',
    })
  })

  test('reads a fee bump of the service whose call failed', () => {
    const diagnosticEventsXdr = [errorEvent(xdr.ScError.sceContract(3506))]
    const answer = found('FAILED', feeBumpResult(innerHash, 'trapped'), { diagnosticEventsXdr })
    expect(readRecord(answer, expected)).toEqual({
      ...place,
      succeeded: false,
      consumed: true,
      hash: outerHash,
      outerHash,
      feeCharged: 87_654n,
      resultCode: 'txFailed',
      contractError: 3506,
    })
  })

  test('charges the fee, and uses no sequence number, if the inner transaction was no longer valid', () => {
    const record = readRecord(found('FAILED', feeBumpResult(innerHash, 'bad-seq')), expected)
    expect(record).toMatchObject({ succeeded: false, consumed: false, feeCharged: 87_654n, resultCode: 'txBadSeq' })
  })

  test('charges the sponsor nothing for a transaction that the client submitted directly, with any fee', () => {
    expect(readRecord(found('SUCCESS', plainResult('success'), alone), expected)).toMatchObject({
      succeeded: true,
      hash: innerHash,
      outerHash: null,
      feeCharged: 0n,
    })
    expect(readRecord(found('FAILED', plainResult('trapped'), alone), expected)).toMatchObject({
      succeeded: false,
      feeCharged: 0n,
    })
  })

  test('charges the sponsor nothing for another sponsor’s fee bump', () => {
    const record = readRecord(found('SUCCESS', feeBumpResult(innerHash, 'success'), foreign), expected)
    expect(record).toMatchObject({ succeeded: true, hash: innerHash, outerHash: foreignBump.hash, feeCharged: 0n })
  })

  test('records a deposit under its only hash, with its fee', () => {
    const record = readRecord(found('SUCCESS', plainResult('success'), alone), { ...expected, sponsor: null })
    expect(record).toMatchObject({ succeeded: true, hash: innerHash, feeCharged: 4_321n })
  })

  const other = '33'.repeat(32)
  const otherInner = signedTransfer({ tx: { seqNum: 9n } })
  test.each([
    ['SUCCESS with a failed result', found('SUCCESS', feeBumpResult(innerHash, 'trapped'))],
    ['FAILED with a result that succeeded', found('FAILED', feeBumpResult(innerHash, 'success'))],
    ['SUCCESS with a plain result that failed', found('SUCCESS', plainResult('trapped'), alone)],
    ['SUCCESS with txBAD_SEQ', found('SUCCESS', bareResult('txBadSeq'), alone)],
    ['FAILED with a plain result that succeeded', found('FAILED', plainResult('success'), alone)],
    ['the result of another inner transaction', found('SUCCESS', feeBumpResult(other, 'success'))],
    ['the failed result of another inner transaction', found('FAILED', feeBumpResult(other, 'trapped'))],
    ['another transaction', found('SUCCESS', plainResult('success'), { envelopeXdr: otherInner })],
    ['an envelope that is no XDR', found('SUCCESS', plainResult('success'), { envelopeXdr: 'garbage!' })],
    ['a result that is no XDR', found('SUCCESS', 'garbage!')],
    ['no bytes for a result', found('SUCCESS', '')],
    ['half a result', found('SUCCESS', feeBumpResult(innerHash, 'success').slice(0, 40))],
    ['the XDR of something else', found('SUCCESS', errorEvent(xdr.ScError.sceContract(1)))],
  ] as const)('rejects %s', (_, answer) => expectUnavailable(() => readRecord(answer, expected)))

  const failed = (events: string[]) =>
    readRecord(found('FAILED', feeBumpResult(innerHash, 'trapped'), { diagnosticEventsXdr: events }), expected)
      .contractError
  const fnCall = diagnosticEvent([xdr.ScVal.scvSymbol('fn_call'), xdr.ScVal.scvU32(3506)])
  const contract = (code: number) => errorEvent(xdr.ScError.sceContract(code))
  const host = errorEvent(xdr.ScError.sceBudget(xdr.ScErrorCode.scecExceededLimit))

  test.each([
    ['none', [], null],
    ['none of a contract', [fnCall, host], null],
    ['among others', [fnCall, contract(3506), host], 3506],
    ['of a callee, then of the caller', [contract(12), contract(3506)], 3506],
    ['beside events that cannot be read', ['garbage!', contract(3502), ''], 3502],
    ['the largest code', [contract(2 ** 32 - 1)], 2 ** 32 - 1],
  ])('contract errors: %s', (_, events, code) => {
    expect(failed(events)).toBe(code)
  })

  test('has no contract error for a success, even if a callee failed', () => {
    const answer = found('SUCCESS', feeBumpResult(innerHash, 'success'), { diagnosticEventsXdr: [contract(12)] })
    expect(readRecord(answer, expected).contractError).toBeNull()
  })
})
