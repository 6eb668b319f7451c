import { xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Refusal } from '#lib/http/refusal.ts'
import { readRecord } from '#lib/sponsor/ledger-record.ts'
import { lookUp } from '#lib/stellar/look-up.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { PASSPHRASE } from '../support/inner-transaction.ts'
import { bareResult, diagnosticEvent, errorEvent, feeBumpResult, plainResult } from './ledger-answers.ts'
import { thrownBy } from './refused.ts'

const innerHash = '11'.repeat(32)
const outerHash = '22'.repeat(32)
let proxy: FaultProxy
let network: Network

beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 50 })
})
afterAll(() => proxy.close())

async function expectUnavailable(act: () => unknown): Promise<void> {
  const thrown = await thrownBy(act)
  if (!(thrown instanceof Refusal)) throw thrown ?? new Error('nothing was thrown')
  expect(thrown.code).toBe('unavailable')
}

describe('lookUp', () => {
  const unknown = { status: 'NOT_FOUND', latestLedger: 9, latestLedgerCloseTime: '1777636800', oldestLedger: 2 }
  const known = { status: 'SUCCESS', latestLedger: 9, ledger: 8, resultXdr: plainResult('success') }

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
    proxy.rule(() => ({ answer: { ...known, status, envelopeXdr: 'not looked at' } }))
    expect(await lookUp(network, outerHash)).toEqual({ ...known, status })
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
    ['found, without a ledger', { answer: { ...known, ledger: undefined } }],
    ['found, with a fraction of a ledger', { answer: { ...known, ledger: 8.5 } }],
    ['found, with diagnostic events that are no list', { answer: { ...known, diagnosticEventsXdr: 'none' } }],
    ['silence', { hang: true, delivered: false }],
  ]
  test.each(nonsense)('%s is no answer', async (_, fault) => {
    proxy.rule(() => fault)
    await expectUnavailable(() => lookUp(network, outerHash))
  })
})

describe('readRecord', () => {
  const found = (status: 'SUCCESS' | 'FAILED', resultXdr: string, diagnosticEventsXdr?: string[]) => ({
    status,
    latestLedger: 9,
    ledger: 8,
    resultXdr,
    ...(diagnosticEventsXdr ? { diagnosticEventsXdr } : {}),
  })
  const ours = { hash: outerHash, innerHash, ours: true }
  const theirs = { hash: innerHash, innerHash, ours: false }

  test('our fee bump that succeeded', () => {
    expect(readRecord(found('SUCCESS', feeBumpResult(innerHash, 'success')), ours)).toEqual({
      succeeded: true,
      hash: outerHash,
      ledger: 8,
      feeCharged: 87_654n,
      resultCode: 'txSuccess',
      contractError: null,
    })
  })

  test('our fee bump whose call failed', () => {
    const events = [errorEvent(xdr.ScError.sceContract(3506))]
    expect(readRecord(found('FAILED', feeBumpResult(innerHash, 'trapped'), events), ours)).toEqual({
      succeeded: false,
      hash: outerHash,
      ledger: 8,
      feeCharged: 87_654n,
      resultCode: 'txFailed',
      contractError: 3506,
    })
  })

  test('our fee bump whose inner transaction was not valid any more', () => {
    const record = readRecord(found('FAILED', feeBumpResult(innerHash, 'bad-seq')), ours)
    expect(record).toMatchObject({ succeeded: false, feeCharged: 87_654n, resultCode: 'txBadSeq', contractError: null })
  })

  test('what the client sent by itself costs the sponsor nothing, whatever it cost', () => {
    expect(readRecord(found('SUCCESS', plainResult('success')), theirs)).toEqual({
      succeeded: true,
      hash: innerHash,
      ledger: 8,
      feeCharged: 0n,
      resultCode: 'txSuccess',
      contractError: null,
    })
    expect(readRecord(found('FAILED', plainResult('trapped')), theirs)).toMatchObject({
      succeeded: false,
      feeCharged: 0n,
    })
  })

  test('neither does a fee bump of somebody else around it', () => {
    const record = readRecord(found('SUCCESS', feeBumpResult(innerHash, 'success')), theirs)
    expect(record).toMatchObject({ succeeded: true, hash: innerHash, feeCharged: 0n })
  })

  const other = '33'.repeat(32)
  test.each([
    ['SUCCESS with a failed result', found('SUCCESS', feeBumpResult(innerHash, 'trapped')), ours],
    ['FAILED with a result that succeeded', found('FAILED', feeBumpResult(innerHash, 'success')), ours],
    ['SUCCESS with a plain result that failed', found('SUCCESS', plainResult('trapped')), theirs],
    ['SUCCESS with txBAD_SEQ', found('SUCCESS', bareResult('txBadSeq')), theirs],
    ['FAILED with a plain result that succeeded', found('FAILED', plainResult('success')), theirs],
    ['a fee bump of another inner transaction', found('SUCCESS', feeBumpResult(other, 'success')), ours],
    ['a failed fee bump of another inner transaction', found('FAILED', feeBumpResult(other, 'trapped')), ours],
    ['another’s fee bump of another transaction', found('SUCCESS', feeBumpResult(other, 'success')), theirs],
    ['a plain result where a fee bump was sent', found('SUCCESS', plainResult('success')), ours],
    ['a result that is no XDR', found('SUCCESS', 'garbage!'), ours],
    ['no bytes for a result', found('SUCCESS', ''), ours],
    ['half a result', found('SUCCESS', feeBumpResult(innerHash, 'success').slice(0, 40)), ours],
    ['the XDR of something else', found('SUCCESS', errorEvent(xdr.ScError.sceContract(1))), ours],
  ] as const)('%s is no answer', (_, answer, sought) => expectUnavailable(() => readRecord(answer, sought)))

  const failed = (events: string[]) =>
    readRecord(found('FAILED', feeBumpResult(innerHash, 'trapped'), events), ours).contractError
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

  test('a success has no contract error, whatever its callees went through', () => {
    const answer = found('SUCCESS', feeBumpResult(innerHash, 'success'), [contract(12)])
    expect(readRecord(answer, ours).contractError).toBeNull()
  })
})
