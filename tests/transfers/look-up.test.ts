import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Transfer } from '#drizzle/schema/transfers.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { wrapInFeeBump } from '#lib/transfers/fee-bump.ts'
import { walkLedgers } from '#lib/transfers/ledger-pages.ts'
import { lookUpHashes } from '#lib/transfers/look-up.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import type { Envelope, RecordedTransfer } from '#lib/transfers/rows.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { PASSPHRASE, signedTransfer, sponsor } from '../support/inner-transaction.ts'
import { feeBumpResult, plainResult } from './ledger-answers.ts'
import { expectUnavailable } from './refused.ts'

const maxTime = 1_777_636_800
let proxy: FaultProxy
let network: Network

beforeAll(async () => {
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 50 })
})
afterAll(() => proxy.close())

type Answer = Record<string, unknown>

/** A transfer with this sequence number and its signed envelopes. */
function transferOf(seqNum: bigint) {
  const signedXDR = signedTransfer({ tx: { seqNum } })
  const inner = decodeInner(signedXDR, PASSPHRASE)
  const { hash: outerHash, envelope: bumped } = wrapInFeeBump(inner, sponsor, PASSPHRASE)
  const innerHash = inner.hashHex
  const transfer = { id: `transfer ${seqNum}`, sponsor: sponsor.publicKey(), recordedLedger: 100 } as Transfer
  const recorded: RecordedTransfer = { transfer, envelopes: [{ innerHash, outerHash, maxTime } as Envelope] }
  return { recorded, id: transfer.id, innerHash, outerHash, bumped, signedXDR }
}

const missing = (given: Answer = {}): Answer => ({
  status: 'NOT_FOUND',
  latestLedger: 110,
  latestLedgerCloseTime: String(maxTime - 60),
  oldestLedger: 1,
  ...given,
})

describe('lookUpHashes', () => {
  const { recorded, innerHash, outerHash, bumped, signedXDR } = transferOf(8n)
  const found = (envelopeXdr: string, resultXdr: string): Answer => ({
    ...missing(),
    status: 'SUCCESS',
    ledger: 105,
    createdAt: String(maxTime - 80),
    envelopeXdr,
    resultXdr,
  })
  const ours = found(bumped, feeBumpResult(innerHash, 'success'))

  /** Returns these responses for each hash in turn, and repeats the last. Returns the requested hashes. */
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

  test('returns one response for each hash, with its range of history', async () => {
    const asked = script({ outer: [missing({ latestLedger: 108 })], inner: [missing({ oldestLedger: 7 })] })
    expect(await lookUpHashes({ network }, recorded)).toEqual([
      { record: undefined, latestLedger: 108, closedAt: maxTime - 60, oldestLedger: 1 },
      { record: undefined, latestLedger: 110, closedAt: maxTime - 60, oldestLedger: 7 },
    ])
    expect(asked.toSorted()).toEqual(['inner', 'outer'])
  })

  test('finds the service’s fee bump by both hashes, with its cost', async () => {
    script({ outer: [ours], inner: [ours] })
    const answers = await lookUpHashes({ network }, recorded)
    expect(answers.map((answer) => answer.record)).toMatchObject([
      { hash: outerHash, applied: innerHash, feeCharged: 87_654n },
      { hash: outerHash, applied: innerHash, feeCharged: 87_654n },
    ])
  })

  test('identifies the service’s fee bump by the inner hash if a ledger closes between the two lookups', async () => {
    script({ outer: [missing()], inner: [ours] })
    expect((await lookUpHashes({ network }, recorded))[1]?.record).toMatchObject({
      hash: outerHash,
      feeCharged: 87_654n,
    })
  })

  test('finds the client’s inner transaction by its hash, at no cost to the sponsor', async () => {
    script({ outer: [missing()], inner: [found(signedXDR, plainResult('success'))] })
    expect((await lookUpHashes({ network }, recorded))[1]?.record).toMatchObject({ hash: innerHash, feeCharged: 0n })
  })

  test('is unavailable if either hash is contradictory or gets no response', async () => {
    script({ outer: [found(bumped, feeBumpResult(innerHash, 'trapped'))], inner: [missing()] })
    await expectUnavailable(() => lookUpHashes({ network }, recorded))
    script({ outer: [missing()], inner: [found(signedTransfer({ tx: { seqNum: 9n } }), plainResult('success'))] })
    await expectUnavailable(() => lookUpHashes({ network }, recorded))
    script({ outer: [missing()], inner: [] })
    await expectUnavailable(() => lookUpHashes({ network }, recorded))
  })

  test('repeats the lookup of a hash if the node lags, and of that hash only', async () => {
    const asked = script({
      outer: [missing({ latestLedger: 109 }), missing({ latestLedger: 109 }), missing()],
      inner: [missing()],
    })
    const answers = await lookUpHashes({ network }, recorded, { atLeast: 110 })
    expect(answers.map(({ latestLedger }) => latestLedger)).toEqual([110, 110])
    expect(asked.toSorted()).toEqual(['inner', 'outer', 'outer', 'outer'])
  })

  test('repeats a lookup with too little history, up to a limit', async () => {
    const asked = script({ outer: [missing()], inner: [missing({ oldestLedger: 101 })] })
    expect((await lookUpHashes({ network }, recorded, { atLeast: 110 }))[1]).toMatchObject({ oldestLedger: 101 })
    expect(asked).toHaveLength(5)
  })
})

describe('walkLedgers', () => {
  const transfers = Array.from({ length: 4 }, (_, index) => transferOf(BigInt(20 + index)))
  const sought = transfers.map(({ recorded }) => recorded)
  const [first, second, third, fourth] = transfers
  if (!first || !second || !third || !fourth) throw new Error('four transfers')

  const foreign = (index: number): Answer => ({
    status: index % 2 ? 'SUCCESS' : 'FAILED',
    txHash: index.toString(16).padStart(64, 'f'),
    ledger: 103,
    createdAt: maxTime - 50,
    // One in three has a result that no current XDR library can decode.
    resultXdr: index % 3 ? plainResult('success') : 'of a protocol to come',
    envelopeXdr: 'of a protocol to come',
  })
  const ours = (txHash: string, envelopeXdr: string, resultXdr: string, status = 'SUCCESS'): Answer => ({
    status,
    txHash,
    ledger: 104,
    createdAt: maxTime - 40,
    envelopeXdr,
    resultXdr,
  })

  /** Serves `transactions` in pages; the last page names ledger 110 as the latest. Returns the requested parameters. */
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

  test('reads several pages, past transactions that cannot be decoded', async () => {
    const all = Array.from({ length: 430 }, (_, index) => foreign(index))
    all[3] = ours(first.outerHash, first.bumped, feeBumpResult(first.innerHash, 'success'))
    all[199] = ours(second.outerHash, second.bumped, feeBumpResult(second.innerHash, 'trapped'), 'FAILED')
    all[200] = ours(third.innerHash, third.signedXDR, plainResult('success'))
    const asked = serve(all, [{ latestLedger: 108, latestLedgerCloseTimestamp: maxTime - 40 }])
    const walk = await walkLedgers(network, sought, 101)
    expect(asked).toEqual([
      { startLedger: 101, pagination: { limit: 200 } },
      { pagination: { cursor: '200', limit: 200 } },
      { pagination: { cursor: '400', limit: 200 } },
    ])
    expect(walk.records.get(first.recorded)).toMatchObject({ succeeded: true, hash: first.outerHash, ledger: 104 })
    expect(walk.records.get(second.recorded)).toMatchObject({ succeeded: false, hash: second.outerHash })
    expect(walk.records.get(third.recorded)).toMatchObject({ hash: third.innerHash, feeCharged: 0n })
    expect(walk.absent).toEqual([fourth.recorded])
    expect(walk.latestLedger).toBe(110)
  })

  test('does not mistake an exactly full page for the last one', async () => {
    const all = Array.from({ length: 200 }, (_, index) => foreign(index))
    const asked = serve(all)
    expect((await walkLedgers(network, sought, 101)).records.size).toBe(0)
    expect(asked).toHaveLength(2)
  })

  test('logs a record of a known envelope that is unreadable or contradictory, and leaves it out of both lists', async () => {
    serve([
      ours(first.outerHash, first.bumped, 'garbage!'),
      ours(second.outerHash, second.bumped, feeBumpResult(second.innerHash, 'trapped')),
      ours(third.outerHash, third.bumped, feeBumpResult(first.innerHash, 'success')),
      ours(fourth.outerHash, fourth.bumped, feeBumpResult(fourth.innerHash, 'success')),
    ])
    const error = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const { records, absent } = await walkLedgers(network, sought, 101)
    expect(error).toHaveBeenCalledTimes(3)
    error.mockRestore()
    expect([...records]).toMatchObject([[fourth.recorded, { succeeded: true }]])
    expect(absent).toEqual([])
  })

  test('returns no record if there are no transactions', async () => {
    serve([])
    expect(await walkLedgers(network, sought, 101)).toEqual({ records: new Map(), absent: sought, latestLedger: 110 })
  })

  test('throws if any page gets no response', async () => {
    proxy.rule(() => ({ error: { code: -32600, message: 'startLedger must be within the ledger range' } }))
    await expectUnavailable(() => walkLedgers(network, sought, 1))
    const all = Array.from({ length: 200 }, (_, index) => foreign(index))
    serve(all, [{}, { transactions: undefined }])
    await expectUnavailable(() => walkLedgers(network, sought, 101))
    serve(all, [{ cursor: undefined }])
    await expectUnavailable(() => walkLedgers(network, sought, 101))
  })

  test('stops at a full page that is returned again and again', async () => {
    const all = Array.from({ length: 200 }, (_, index) => foreign(index))
    for (const cursor of ['200', '0', '']) {
      let asked = 0
      proxy.rule(() => {
        asked += 1
        const page = { transactions: all, latestLedger: 110, latestLedgerCloseTimestamp: maxTime - 30, cursor }
        return { answer: page }
      })
      await expectUnavailable(() => walkLedgers(network, sought, 101))
      expect(asked).toBe(2)
    }
  })

  test('stops after too many full pages, with any cursors', async () => {
    const all = Array.from({ length: 200 }, (_, index) => foreign(index))
    let asked = 0
    proxy.rule(() => {
      asked += 1
      const cursor = String(asked)
      return { answer: { transactions: all, latestLedger: 110, latestLedgerCloseTimestamp: maxTime - 30, cursor } }
    })
    await expectUnavailable(() => walkLedgers(network, sought, 101))
    expect(asked).toBe(50)
  })
})
