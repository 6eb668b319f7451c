import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { isContested, send } from '#lib/stellar/transaction.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { PASSPHRASE, signedTransfer } from '../support/inner-transaction.ts'
import { bareResult, feeBumpResult } from '../transfers/ledger-answers.ts'

const envelope = signedTransfer()
let proxy: FaultProxy
let network: Network

beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 50 })
})
afterAll(() => proxy.close())

const logged: unknown[] = []
beforeEach(() => {
  logged.length = 0
  vi.spyOn(console, 'error').mockImplementation((line) => logged.push(line))
})
afterEach(() => vi.restoreAllMocks())

const answer = (status: unknown, errorResultXdr?: unknown): Fault => ({
  answer: { status, latestLedger: 7, latestLedgerCloseTime: '1', hash: '22'.repeat(32), errorResultXdr },
})

test('sends the envelope unchanged', async () => {
  let body: unknown
  proxy.rule(({ method, params }) => {
    body = { method, params }
    return answer('PENDING')
  })
  await send(network, envelope)
  expect(body).toEqual({ method: 'sendTransaction', params: { transaction: envelope } })
})

test.each(['PENDING', 'DUPLICATE', 'TRY_AGAIN_LATER'])('treats %s as an unknown outcome', async (status) => {
  for (const errorResultXdr of [undefined, bareResult('txBadSeq')]) {
    proxy.rule(() => answer(status, errorResultXdr))
    expect(await send(network, envelope)).toEqual({ kind: 'unknown', latestLedger: 7, latestLedgerCloseTime: 1 })
  }
})

test.each([
  ['txBadSeq', bareResult('txBadSeq'), true],
  ['txBadAuth', bareResult('txBadAuth'), false],
  ['txBadAuthExtra', bareResult('txBadAuthExtra'), false],
  ['txTooLate', bareResult('txTooLate'), false],
  ['txBadSeq', feeBumpResult('11'.repeat(32), 'bad-seq'), true],
  ['txFailed', feeBumpResult('11'.repeat(32), 'trapped'), false],
])('treats ERROR with %s as contested: %3$s', async (resultCode, errorResultXdr, contested) => {
  proxy.rule(() => answer('ERROR', errorResultXdr))
  expect(await send(network, envelope)).toEqual({
    kind: 'error',
    latestLedger: 7,
    latestLedgerCloseTime: 1,
    resultCode,
  })
  expect(isContested(resultCode)).toBe(contested)
})

test.each(['txTooEarly', 'txInsufficientFee'] as const)(
  'treats ERROR with %s, which may be temporary, as an unknown outcome',
  async (code) => {
    proxy.rule(() => answer('ERROR', bareResult(code)))
    expect(await send(network, envelope)).toEqual({ kind: 'unknown', latestLedger: 7, latestLedgerCloseTime: 1 })
  },
)

test('treats ERROR without a code as an unknown outcome', async () => {
  proxy.rule(() => answer('ERROR'))
  expect(await send(network, envelope)).toEqual({ kind: 'unknown', latestLedger: 7, latestLedgerCloseTime: 1 })
})

const silence: [string, Fault][] = [
  ['ERROR with an unreadable code', answer('ERROR', 'garbage!')],
  ['ERROR with a code that is not a string', answer('ERROR', 7)],
  ['an unknown status', answer('ACCEPTED')],
  ['no status', answer(undefined)],
  ['an empty result', { answer: {} }],
  ['a JSON-RPC error', { error: { code: -32602, message: 'invalid_xdr' } }],
  ['a 500', { status: 500 }],
  ['a 429', { status: 429 }],
  ['a connection that drops', { drop: true, delivered: false }],
  ['silence', { hang: true, delivered: false }],
]
test.each(silence)('treats %s as an unknown outcome', async (_, fault) => {
  proxy.rule(() => fault)
  expect(await send(network, envelope)).toEqual({ kind: 'unknown' })
  expect(logged).toHaveLength(1)
  expect(String(logged[0])).not.toContain(envelope.slice(0, 100))
})

test('treats an unreachable RPC as an unknown outcome', async () => {
  const gone = await startFaultProxy('http://127.0.0.1:1')
  await gone.close()
  const nowhere = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: gone.url, pollMs: 50 })
  expect(await send(nowhere, envelope)).toEqual({ kind: 'unknown' })
})
