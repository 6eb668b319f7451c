import type { xdr } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Database } from '#lib/db/connection.ts'
import { type Network, openNetwork } from '#lib/stellar/network.ts'
import { renewEnvelope } from '#lib/transfers/envelopes.ts'
import { decodeInner, wrapInFeeBump } from '#lib/transfers/fee-bump.ts'
import { readRecord } from '#lib/transfers/look-up.ts'
import { readIntent } from '#lib/transfers/policy.ts'
import { bookTransfer, recordTransfer } from '#lib/transfers/record.ts'
import { type Books, findTransferOfHash, type RecordedTransfer, type Transfer } from '#lib/transfers/rows.ts'
import { openSubmission } from '#lib/transfers/submission.ts'
import { newTracked, renew } from '#lib/transfers/tracked.ts'
import { openTracking, type TrackingTools } from '#lib/transfers/tracking.ts'
import { cloneDatabase } from '../support/database.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { NOW, PASSPHRASE, rules, signedTransfer, sponsor } from '../support/inner-transaction.ts'
import { sendAnswer } from '../support/transfers.ts'
import { bareResult, feeBumpResult } from './ledger-answers.ts'
import { limits, PLENTY, recordNamed, transferNamed } from './quota-cases.ts'
import { clear, findDiscrepancies } from './quota-ledger.ts'

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
beforeEach(() => clear(db))
afterAll(async () => {
  await proxy?.close()
  await clone?.drop()
})

const RECORDED = 100
const APPLIED = 105
const now = new Date(NOW * 1000)

/** Records an envelope as the sponsor does. All have one sequence number; each fee makes another envelope. */
async function record(fee: number) {
  const inner = decodeInner(signedTransfer({ tx: { fee } }), PASSPHRASE)
  const intent = readIntent(inner, rules)
  const bump = wrapInFeeBump(inner, sponsor, PASSPHRASE)
  const given = { bump, sponsor: sponsor.publicKey(), recordedLedger: RECORDED, limits, available: PLENTY }
  await recordTransfer(db, { inner, intent, terms: {}, now }, given)
  const standing = (outcome: 'success' | 'bad-seq', ledger: number, feeCharged: bigint) => ({
    status: outcome === 'success' ? ('SUCCESS' as const) : ('FAILED' as const),
    ledger,
    createdAt: NOW + ledger,
    envelopeXdr: bump.envelope,
    resultXdr: feeBumpResult(inner.hashHex, outcome, feeCharged),
  })
  return { innerHash: inner.hashHex, outerHash: bump.hash, standing }
}

async function find(innerHash: string): Promise<RecordedTransfer> {
  const recorded = await findTransferOfHash(db, innerHash)
  if (!recorded) throw new Error('nothing was recorded')
  return recorded
}

const open = (readAccount: TrackingTools['readAccount']) =>
  openTracking({
    network,
    readAccount,
    database: async () => db,
    now: () => now,
    books: bookTransfer,
    drop: () => undefined,
    latest: () => APPLIED,
  })

const range = (latestLedger: number) => ({ latestLedger, latestLedgerCloseTime: NOW + latestLedger, oldestLedger: 1 })

test.each([
  ['every node knows it', 0],
  ['the first answers are of a node that lags behind the payment', 2],
])('a rival in the ledger pages and a failed fee bump beside it are both in the books; %s', async (_, lagging) => {
  const first = await record(90_560)
  const rival = await record(90_562)
  let stale = lagging
  proxy.rule(({ params }) => {
    const isRival = params.hash === rival.outerHash || params.hash === rival.innerHash
    if (isRival) return { answer: { ...range(APPLIED), ...rival.standing('success', APPLIED, 64_321n) } }
    stale -= 1
    if (stale >= 0) return { answer: { ...range(APPLIED - 2), status: 'NOT_FOUND' } }
    return { answer: { ...range(APPLIED), ...first.standing('bad-seq', APPLIED - 1, 1_111n) } }
  })
  const recorded = await find(rival.innerHash)
  const tracking = open(() => Promise.reject(new Error('nobody asks for the account')))
  const expected = { innerHash: rival.innerHash, sponsor: sponsor.publicKey(), passphrase: PASSPHRASE }
  const shown = readRecord(rival.standing('success', APPLIED, 64_321n), expected)
  await tracking.settleFound(newTracked(recorded, false), shown)
  const feeCharged = 64_321n + 1_111n
  expect((await findTransferOfHash(db, first.innerHash))?.transfer).toMatchObject({
    status: 'succeeded',
    applied: rival.innerHash,
    feeCharged,
  })
  expect(await db.query.quotas.findMany()).toMatchObject([
    { held: 0n, used: feeCharged, count: 1 },
    { held: 0n, used: feeCharged, count: 1 },
  ])
  expect(await findDiscrepancies(db)).toEqual([])
})

test.each([
  ['after the account has shown the number used', { late: 0, isRead: false }],
  ['once its time is over', { late: 10_000, isRead: true }],
])('a request records a rival that has applied, while the first envelope is looked up %s', async (_, given) => {
  const first = await record(90_560)
  const entry = newTracked(await find(first.innerHash), false)
  const { sequenceNumber: seqNum } = entry.transfer
  const latest = APPLIED + given.late
  let { isRead } = given
  const asked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  let rival: Awaited<ReturnType<typeof record>> | undefined
  proxy.rule(async ({ params }) => {
    if (rival && (params.hash === rival.outerHash || params.hash === rival.innerHash)) {
      return { answer: { ...range(latest), ...rival.standing('success', APPLIED, 64_321n) } }
    }
    if (isRead) {
      asked.resolve()
      await goOn.promise
    }
    return { answer: { ...range(latest), status: 'NOT_FOUND' } }
  })
  const tracking = open(async () => {
    isRead = true
    return { account: { seqNum } as xdr.AccountEntry, latestLedger: latest }
  })
  const lookedUp = tracking.lookUp(entry)
  await asked.promise
  rival = await record(90_562)
  renew(entry, await find(rival.innerHash))
  goOn.resolve()
  await lookedUp
  expect((await find(first.innerHash)).transfer.status).toBe('open')
  expect(entry.lookedUpTo).toBe(-1)
  await tracking.lookUp(entry)
  expect((await find(first.innerHash)).transfer).toMatchObject({ status: 'succeeded', applied: rival.innerHash })
  expect(await findDiscrepancies(db)).toEqual([])
})

test('a rival that is recorded while the first envelope is looked up is looked up in that ledger, too', async () => {
  const first = await record(90_560)
  const entry = newTracked(await find(first.innerHash), false)
  const asked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  proxy.rule(async ({ method }) => {
    if (method === 'sendTransaction') return { answer: sendAnswer('PENDING') }
    asked.resolve()
    await goOn.promise
    return { answer: { ...range(APPLIED), status: 'NOT_FOUND' } }
  })
  const seqNum = entry.transfer.sequenceNumber - 1n
  const tracking = open(async () => ({ account: { seqNum } as xdr.AccountEntry, latestLedger: APPLIED }))
  const lookedUp = tracking.lookUp(entry)
  await asked.promise
  renew(entry, await find((await record(90_562)).innerHash))
  goOn.resolve()
  await lookedUp
  expect(entry.lookedUpTo).toBe(-1)
  await tracking.lookUp(entry)
  expect(entry.lookedUpTo).toBe(APPLIED)
})

test.each([
  ['known', APPLIED],
  ['that the answer to the sending names', APPLIED + 1],
])(
  'an envelope sent after a ledger closed is not sent again because of that ledger, which is one %s',
  async (_, ledger) => {
    const { innerHash } = await record(90_560)
    const entry = newTracked(await find(innerHash), true)
    const [envelope] = entry.envelopes
    if (!envelope) throw new Error('no envelope')
    proxy.rule(() => ({ answer: { ...sendAnswer('PENDING'), latestLedger: ledger } }))
    proxy.calls.clear()
    const seqNum = entry.transfer.sequenceNumber - 1n
    const tracking = open(async () => ({ account: { seqNum } as xdr.AccountEntry, latestLedger: ledger }))
    await tracking.submit(entry, envelope)
    await tracking.resubmit(entry, ledger, entry.envelopes)
    expect(proxy.calls.get('sendTransaction')).toBe(1)
    await tracking.resubmit(entry, ledger + 1, entry.envelopes)
    expect(proxy.calls.get('sendTransaction')).toBe(2)
  },
)

test('an envelope whose answer names a ledger far above the known ones is sent again at the next ledger', async () => {
  const { innerHash } = await record(90_560)
  const entry = newTracked(await find(innerHash), true)
  const [envelope] = entry.envelopes
  if (!envelope) throw new Error('no envelope')
  proxy.rule(() => ({ answer: { ...sendAnswer('PENDING'), latestLedger: APPLIED + 1_000 } }))
  proxy.calls.clear()
  const seqNum = entry.transfer.sequenceNumber - 1n
  const tracking = open(async () => ({ account: { seqNum } as xdr.AccountEntry, latestLedger: APPLIED + 1 }))
  await tracking.submit(entry, envelope)
  await tracking.resubmit(entry, APPLIED + 1, entry.envelopes)
  expect(proxy.calls.get('sendTransaction')).toBe(2)
})

test('a refusal of signatures that were renewed meanwhile says nothing of the new ones', async () => {
  const { innerHash } = await record(90_560)
  const entry = newTracked(await find(innerHash), false)
  const [stored] = entry.envelopes
  if (!stored) throw new Error('no envelope')
  const asked = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  proxy.rule(async ({ method }) => {
    if (method !== 'sendTransaction') return { answer: { ...range(APPLIED), status: 'NOT_FOUND' } }
    asked.resolve()
    await goOn.promise
    return { answer: sendAnswer('ERROR', bareResult('txBadAuth')) }
  })
  const seqNum = entry.transfer.sequenceNumber - 1n
  const tracking = open(async () => ({ account: { seqNum } as xdr.AccountEntry, latestLedger: APPLIED }))
  const sent = tracking.submit(entry, stored)
  await asked.promise
  await renewEnvelope(db, stored, { outerHash: 'ab'.repeat(32), signed: stored.signed })
  renew(entry, await find(innerHash))
  goOn.resolve()
  await sent
  expect(entry.refusals.size).toBe(0)
  const [renewed] = (await find(innerHash)).envelopes
  expect(renewed).toMatchObject({ outerHash: 'ab'.repeat(32), resultCode: null, lastSentAt: null })
  if (renewed) await tracking.submit(entry, renewed)
  expect((await find(innerHash)).envelopes).toMatchObject([{ resultCode: 'txBadAuth' }])
})

/** Transfers that are open, each of an account of its own. */
async function recordMany(count: number): Promise<Transfer[]> {
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

const openEngine = (books: Books, on = network) =>
  openSubmission({ network: on, database: async () => db, now: () => new Date(), books })
const unsettled: Books = () => Promise.reject(new Error('nothing is settled'))

test('a transfer whose books cannot be written does not keep others from settling', async () => {
  proxy.rule(() => ({ answer: over }))
  const [first, ...others] = await recordMany(5)
  const failedOnce = new Set<string>()
  const submission = openEngine(async (tx, settled, now) => {
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

test('transfers of which the RPC contradicts itself, however many, do not keep another from settling', async () => {
  const all = await recordMany(40)
  const contradicted = new Set(Array.from({ length: 39 }, (_, index) => transferNamed(String(index)).innerHash))
  proxy.rule(({ method, params }) => {
    if (method !== 'getTransaction') return { status: 500 }
    if (!contradicted.has(String(params.hash))) return { answer: over }
    const found = { status: 'SUCCESS', ledger: 999, createdAt: 8_000_000_000, envelopeXdr: 'AAAA', resultXdr: 'AAAA' }
    return { answer: { ...over, ...found } }
  })
  const submission = openEngine(bookTransfer)
  for (const transfer of all.slice(0, 39)) void submission.track(transfer, 10)
  const [last] = all.slice(39)
  const ended = last && (await submission.track(last, 60_000))
  await submission.stop()
  expect(ended?.kind).toBe('settled')
  expect(await statusOf(39)).toBe('expired')
  expect(await statusOf(0)).toBe('open')
})

test('a poll that the RPC never answers ends with the patience of its caller', async () => {
  const [open] = await recordMany(1)
  const silent: Network = { ...network, call: () => new Promise(() => undefined) }
  const submission = openEngine(unsettled, silent)
  if (open) await submission.poll(open, 10)
  expect(await statusOf(0)).toBe('open')
})

test('requests for one transfer, one after the other, cause at most one poll in each interval', async () => {
  const young = { ...over, latestLedgerCloseTime: 1 }
  proxy.rule(({ method }) => (method === 'getTransaction' ? { answer: young } : { status: 500 }))
  proxy.calls.clear()
  const [open] = await recordMany(1)
  if (!open) throw new Error('nothing was recorded')
  const slow: Network = { ...network, pollMs: 2_000 }
  const submission = openEngine(unsettled, slow)
  const began = performance.now()
  for (let asked = 0; asked < 100; asked += 1) await submission.poll(open, 10)
  await submission.stop()
  const intervals = Math.ceil((performance.now() - began) / slow.pollMs)
  // The process asks for one hash by itself, and each poll for both.
  expect(proxy.calls.get('getTransaction')).toBeLessThanOrEqual((intervals + 1) * 6)
})
