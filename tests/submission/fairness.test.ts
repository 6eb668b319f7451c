import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Database } from '#lib/db/connection.ts'
import { bookTransfer } from '#lib/sponsor/recording.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { openSubmission } from '#lib/submission/submission.ts'
import { type Books, findTransferOfHash, type Transfer } from '#lib/submission/transfers.ts'
import { limits, PLENTY, recordNamed, transferNamed } from '../sponsor/quota-cases.ts'
import { clear, findDiscrepancies } from '../sponsor/quota-ledger.ts'
import { cloneDatabase } from '../support/database.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { PASSPHRASE } from '../support/inner-transaction.ts'

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
let proxy: FaultProxy
let network: Network
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
  proxy = await startFaultProxy('http://127.0.0.1:1')
  network = openNetwork({ name: 'local', passphrase: PASSPHRASE, rpcUrl: proxy.url, pollMs: 20 })
})
afterAll(async () => {
  await proxy?.close()
  await clone?.drop()
})
beforeEach(() => clear(db))

/** Transfers that are open, each of an account of its own. */
async function record(count: number): Promise<Transfer[]> {
  const recorded: Transfer[] = []
  for (let index = 0; index < count; index += 1) {
    recorded.push((await recordNamed(db, transferNamed(String(index)), limits, PLENTY)).transfer)
  }
  return recorded
}

const statusOf = async (index: number) =>
  (await findTransferOfHash(db, transferNamed(String(index)).innerHash))?.transfer.status

/** The last ledger has closed long after every maxTime. */
const over = { latestLedger: 1_000, latestLedgerCloseTime: 9_000_000_000, oldestLedger: 1, status: 'NOT_FOUND' }

const open = (books: Books) => openSubmission({ network, database: async () => db, now: () => new Date(), books })

test('a transfer whose books cannot be written keeps no other from its end', async () => {
  proxy.rule(() => ({ answer: over }))
  const [first, ...others] = await record(5)
  const failedOnce = new Set<string>()
  const submission = open(async (tx, settled, now) => {
    if (settled.id === first?.id || !failedOnce.has(settled.id)) {
      failedOnce.add(settled.id)
      throw new Error('the books cannot be written')
    }
    await bookTransfer(tx, settled, now)
  })
  if (first) void submission.track(first, 10)
  const ended = await Promise.all(others.map((transfer) => submission.track(transfer, 60_000)))
  await submission.stop()
  for (const { kind } of ended) expect(kind).toBe('settled')
  expect(await statusOf(0)).toBe('open')
  expect(await findDiscrepancies(db)).toEqual([])
})

test('however many there are of which the RPC contradicts itself, they keep no other from its end', async () => {
  const all = await record(40)
  const contradicted = new Set(Array.from({ length: 39 }, (_, index) => transferNamed(String(index)).innerHash))
  proxy.rule(({ method, params }) => {
    if (method !== 'getTransaction') return { status: 500 }
    if (!contradicted.has(String(params.hash))) return { answer: over }
    const found = { status: 'SUCCESS', ledger: 999, createdAt: 8_000_000_000, envelopeXdr: 'AAAA', resultXdr: 'AAAA' }
    return { answer: { ...over, ...found } }
  })
  const submission = open(bookTransfer)
  for (const transfer of all.slice(0, 39)) void submission.track(transfer, 10)
  const [last] = all.slice(39)
  const ended = last && (await submission.track(last, 60_000))
  await submission.stop()
  expect(ended?.kind).toBe('settled')
  expect(await statusOf(39)).toBe('expired')
  expect(await statusOf(0)).toBe('open')
})

test('a poll of which the RPC says nothing ends with the patience of its caller', async () => {
  const [open] = await record(1)
  const silent: Network = { ...network, call: () => new Promise(() => undefined) }
  const books: Books = () => Promise.reject(new Error('nothing is settled'))
  const submission = openSubmission({ network: silent, database: async () => db, now: () => new Date(), books })
  if (open) await submission.poll(open, 10)
  expect(await statusOf(0)).toBe('open')
})

test('requests for one transfer, one after the other, cause at most one poll in each interval', async () => {
  const young = { ...over, latestLedgerCloseTime: 1 }
  proxy.rule(({ method }) => (method === 'getTransaction' ? { answer: young } : { status: 500 }))
  proxy.calls.clear()
  const [open] = await record(1)
  if (!open) throw new Error('nothing was recorded')
  const slow: Network = { ...network, pollMs: 2_000 }
  const books: Books = () => Promise.reject(new Error('nothing is settled'))
  const submission = openSubmission({ network: slow, database: async () => db, now: () => new Date(), books })
  const began = performance.now()
  for (let asked = 0; asked < 100; asked += 1) await submission.poll(open, 10)
  await submission.stop()
  const intervals = Math.ceil((performance.now() - began) / slow.pollMs)
  // The process asks for one hash by itself, and each poll for both.
  expect(proxy.calls.get('getTransaction')).toBeLessThanOrEqual((intervals + 1) * 6)
})
