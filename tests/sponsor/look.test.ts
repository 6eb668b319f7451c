import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Refusal } from '#lib/http/refusal.ts'
import { lookByHashes, walkLedgers } from '#lib/sponsor/look.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { PASSPHRASE } from '../support/inner-transaction.ts'
import { feeBumpResult, plainResult } from './ledger-answers.ts'
import { thrownBy } from './refused.ts'

const innerHash = '11'.repeat(32)
const outerHash = '22'.repeat(32)
const maxTime = 1_777_636_800
const sought = { innerHash, outerHash, maxTime, sinceLedger: 100 }
let proxy: FaultProxy
let network: Network

beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 50 })
})
afterAll(() => proxy.close())

type Answer = Record<string, unknown>
const missing = (closeTime = maxTime - 60, oldestLedger = 1, latestLedger = 110): Answer => ({
  status: 'NOT_FOUND',
  latestLedger,
  latestLedgerCloseTime: String(closeTime),
  oldestLedger,
})
const found = (resultXdr: string, status = 'SUCCESS'): Answer => ({ status, latestLedger: 110, ledger: 105, resultXdr })

/** Answers to the questions for a hash, one after the other; the last one stays. Gives the hashes asked for, in order. */
function script(answers: { outer: Answer[]; inner: Answer[] }): string[] {
  const asked: string[] = []
  proxy.rule(({ params }) => {
    const whose = params.hash === outerHash ? 'outer' : 'inner'
    const left = answers[whose]
    const [next] = left.length > 1 ? left.splice(0, 1) : left
    asked.push(whose)
    return next ? { answer: next } : { status: 500 }
  })
  return asked
}

async function expectUnavailable(act: () => unknown): Promise<void> {
  const thrown = await thrownBy(act)
  if (!(thrown instanceof Refusal)) throw thrown ?? new Error('nothing was thrown')
  expect(thrown.code).toBe('unavailable')
}

describe('lookByHashes', () => {
  test('our fee bump: one question', async () => {
    const asked = script({ outer: [found(feeBumpResult(innerHash, 'success'))], inner: [] })
    const look = await lookByHashes(network, sought)
    expect(look.found).toMatchObject({ succeeded: true, hash: outerHash, ledger: 105, feeCharged: 87_654n })
    expect(asked).toEqual(['outer'])
  })

  test('our fee bump, failed', async () => {
    script({ outer: [found(feeBumpResult(innerHash, 'trapped'), 'FAILED')], inner: [] })
    expect((await lookByHashes(network, sought)).found).toMatchObject({ succeeded: false, resultCode: 'txFailed' })
  })

  test('the client’s own inner transaction', async () => {
    const asked = script({ outer: [missing()], inner: [found(plainResult('success'))] })
    const look = await lookByHashes(network, sought)
    expect(look.found).toMatchObject({ succeeded: true, hash: innerHash, feeCharged: 0n })
    expect(asked).toEqual(['outer', 'inner', 'outer'])
  })

  test('somebody else’s fee bump of it', async () => {
    script({ outer: [missing()], inner: [found(feeBumpResult(innerHash, 'success'))] })
    expect((await lookByHashes(network, sought)).found).toMatchObject({ hash: innerHash, feeCharged: 0n })
  })

  test('a ledger closes between the two questions: it is our own, at our own cost', async () => {
    const answer = found(feeBumpResult(innerHash, 'success'))
    const asked = script({ outer: [missing(), answer], inner: [answer] })
    expect((await lookByHashes(network, sought)).found).toMatchObject({ hash: outerHash, feeCharged: 87_654n })
    expect(asked).toEqual(['outer', 'inner', 'outer'])
  })

  test('a node that is behind does not make it the client’s own', async () => {
    const behind = missing(maxTime - 60, 1, 104)
    script({ outer: [behind], inner: [found(feeBumpResult(innerHash, 'success'))] })
    await expectUnavailable(() => lookByHashes(network, sought))
  })

  test('a contradiction on either hash, or silence on one, is no answer', async () => {
    script({ outer: [found(feeBumpResult(innerHash, 'trapped'))], inner: [] })
    await expectUnavailable(() => lookByHashes(network, sought))
    script({ outer: [found(feeBumpResult('33'.repeat(32), 'success'))], inner: [] })
    await expectUnavailable(() => lookByHashes(network, sought))
    script({ outer: [missing()], inner: [found(plainResult('trapped'))] })
    await expectUnavailable(() => lookByHashes(network, sought))
    script({ outer: [missing(maxTime + 1)], inner: [] })
    await expectUnavailable(() => lookByHashes(network, sought))
  })

  const past = missing(maxTime + 1, 100)
  test.each([
    ['both answers are past maxTime and reach back far enough', past, past, true],
    ['a history that is longer', missing(maxTime + 1, 1), missing(maxTime + 1, 99), true],
    ['the last ledger closed at maxTime', missing(maxTime, 1), missing(maxTime, 1), false],
    ['the last ledger closed long before', missing(), missing(), false],
    ['only the outer answer is past maxTime', past, missing(maxTime, 100), false],
    ['only the inner answer is past maxTime', missing(maxTime, 100), past, false],
    ['the outer history starts too late', missing(maxTime + 1, 101), past, false],
    ['the inner history starts too late', past, missing(maxTime + 1, 101), false],
    ['a close time of 0', missing(0), missing(0), false],
  ])('%s: dead is %4$s', async (_, outer, inner, dead) => {
    script({ outer: [outer], inner: [inner] })
    expect(await lookByHashes(network, sought)).toMatchObject({ found: null, dead, latestLedger: 110 })
  })

  test('it has looked as far as the answer that is further behind', async () => {
    script({ outer: [missing(maxTime, 1, 108)], inner: [missing(maxTime, 1, 109)] })
    expect(await lookByHashes(network, sought)).toMatchObject({ latestLedger: 108 })
  })

  test('only one hash known to be missing proves nothing', async () => {
    script({ outer: [past], inner: [found(plainResult('success'))] })
    expect((await lookByHashes(network, sought)).found).toMatchObject({ succeeded: true })
    script({ outer: [found(feeBumpResult(innerHash, 'bad-seq'), 'FAILED')], inner: [past] })
    expect((await lookByHashes(network, sought)).found).toMatchObject({ succeeded: false, resultCode: 'txBadSeq' })
  })
})

describe('walkLedgers', () => {
  const transfers = Array.from({ length: 4 }, (_, index) => ({
    innerHash: `${index}1`.repeat(32),
    outerHash: `${index}2`.repeat(32),
    maxTime,
    sinceLedger: 100,
  }))
  const [first, second, third, fourth] = transfers
  if (!first || !second || !third || !fourth) throw new Error('four transfers')

  const foreign = (index: number): Answer => ({
    status: index % 2 ? 'SUCCESS' : 'FAILED',
    txHash: index.toString(16).padStart(64, 'f'),
    ledger: 103,
    // One in three has a result that no XDR library of today knows.
    resultXdr: index % 3 ? plainResult('success') : 'of a protocol to come',
    envelopeXdr: 'of a protocol to come',
  })
  const ours = (txHash: string, resultXdr: string, status = 'SUCCESS'): Answer => ({
    status,
    txHash,
    ledger: 104,
    resultXdr,
  })

  /** Serves `transactions` in pages; the last page says that ledger 110 is the latest. Gives the parameters asked for. */
  function serve(transactions: Answer[], pages: Answer[] = []): unknown[] {
    const asked: unknown[] = []
    proxy.rule(({ params }) => {
      asked.push(params)
      const start = 'startLedger' in params ? 0 : Number((params.pagination as { cursor: string }).cursor)
      const page = {
        transactions: transactions.slice(start, start + 200),
        latestLedger: 110,
        latestLedgerCloseTimestamp: maxTime - 30,
        cursor: String(start + 200),
      }
      return { answer: { ...page, ...pages[asked.length - 1] } }
    })
    return asked
  }

  test('over several pages, past transactions that nobody can decode', async () => {
    const all = Array.from({ length: 430 }, (_, index) => foreign(index))
    all[3] = ours(first.outerHash, feeBumpResult(first.innerHash, 'success'))
    all[199] = ours(second.outerHash, feeBumpResult(second.innerHash, 'trapped'), 'FAILED')
    all[200] = ours(third.innerHash, plainResult('success'))
    const asked = serve(all, [{ latestLedger: 108, latestLedgerCloseTimestamp: maxTime - 40 }])
    const walk = await walkLedgers(network, transfers, 101)
    expect(asked).toEqual([
      { startLedger: 101, pagination: { limit: 200 } },
      { pagination: { cursor: '200', limit: 200 } },
      { pagination: { cursor: '400', limit: 200 } },
    ])
    expect(walk.records.get(first.innerHash)).toMatchObject({ succeeded: true, hash: first.outerHash, ledger: 104 })
    expect(walk.records.get(second.innerHash)).toMatchObject({ succeeded: false, hash: second.outerHash })
    expect(walk.records.get(third.innerHash)).toMatchObject({ hash: third.innerHash, feeCharged: 0n })
    expect(walk.records.has(fourth.innerHash)).toBe(false)
    expect(walk).toMatchObject({ latestLedger: 110, latestCloseTime: maxTime - 30 })
  })

  test('a page that is exactly full is not taken for the last', async () => {
    const all = Array.from({ length: 200 }, (_, index) => foreign(index))
    const asked = serve(all)
    expect((await walkLedgers(network, transfers, 101)).records.size).toBe(0)
    expect(asked).toHaveLength(2)
  })

  test('what is ours and cannot be read, or contradicts itself, is known to be unknown', async () => {
    serve([
      ours(first.outerHash, 'garbage!'),
      ours(second.outerHash, feeBumpResult(second.innerHash, 'trapped')),
      ours(third.outerHash, feeBumpResult(first.innerHash, 'success')),
      ours(fourth.outerHash, feeBumpResult(fourth.innerHash, 'success')),
    ])
    const error = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const { records } = await walkLedgers(network, transfers, 101)
    expect(error).toHaveBeenCalledTimes(3)
    error.mockRestore()
    const read = transfers.map((transfer) => records.get(transfer.innerHash))
    expect(read.slice(0, 3)).toEqual([null, null, null])
    expect(read[3]).toMatchObject({ succeeded: true })
  })

  test('no transactions at all', async () => {
    serve([])
    expect(await walkLedgers(network, transfers, 101)).toEqual({
      records: new Map(),
      latestLedger: 110,
      latestCloseTime: maxTime - 30,
    })
  })

  test('no answer to any page is no answer at all', async () => {
    proxy.rule(() => ({ error: { code: -32600, message: 'startLedger must be within the ledger range' } }))
    await expectUnavailable(() => walkLedgers(network, transfers, 1))
    const all = Array.from({ length: 200 }, (_, index) => foreign(index))
    serve(all, [{}, { transactions: undefined }])
    await expectUnavailable(() => walkLedgers(network, transfers, 101))
    serve(all, [{ cursor: undefined }])
    await expectUnavailable(() => walkLedgers(network, transfers, 101))
  })
})
