import { eq } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { transfers } from '#drizzle/schema/transfers.ts'
import { envelopeRow, insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import type { Database } from '#lib/db/connection.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { adoptTransfers } from '#lib/transfers/adoption.ts'
import { refusalOf } from '#lib/transfers/resubmit.ts'
import { type Envelope, findTransfer, type Transfer } from '#lib/transfers/rows.ts'
import { openTracker, type Tracker } from '#lib/transfers/track.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { type FakeRpc, startFakeRpc } from '../support/fake-rpc.ts'
import { silentView } from '../support/silent-view.ts'

let database: TestDatabase
let db: Database
let fake: FakeRpc
let tracker: Tracker
beforeAll(async () => {
  database = await cloneDatabase()
  db = await database.store.database()
  fake = await startFakeRpc()
})
afterAll(async () => {
  await fake.close()
  await database.drop()
})
beforeEach(async () => {
  await db.execute('TRUNCATE transfers CASCADE')
  const network = openNetwork({ name: 'local', passphrase: fake.passphrase, rpcUrl: fake.url, pollMs: 20 })
  tracker = openTracker({ network, database: async () => db, now: () => new Date() })
})

const waitFor = async ({ id }: Transfer, waitMs: number) => (await tracker.track([id], { waitMs }))[0]

async function record(account: string, fields: Parameters<typeof transferRow>[0] = {}) {
  const row = transferRow({ account, ...fields })
  await insertRows(db, { transfers: [row] })
  const recorded = await findTransfer(db, row.id)
  if (!recorded) throw new Error('no row')
  return recorded.transfer
}

test('keeps tracking a transfer that arrives while a round reads the rows', async () => {
  const [first, second] = [await record('GFIRST'), await record('GSECOND')]
  const locking = new Client({ connectionString: database.url })
  await locking.connect()
  await locking.query('BEGIN; LOCK TABLE transfers IN ACCESS EXCLUSIVE MODE')
  const isBlocked = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
  const ended = waitFor(first, 60_000)
  await expect.poll(async () => (await locking.query(isBlocked)).rowCount, { interval: 10 }).toBe(1)
  const outcome = waitFor(second, 60_000)
  await locking.query('COMMIT')
  await locking.end()
  const settled = { status: 'expired', settledAt: new Date() } as const
  await db.update(transfers).set(settled).where(eq(transfers.id, first.id))
  expect((await ended)?.kind).toBe('settled')
  await db.update(transfers).set(settled).where(eq(transfers.id, second.id))
  expect((await outcome)?.kind).toBe('settled')
})

test('an idle process adopts a transfer that no process has looked up since', async () => {
  const orphan = await record('GORPHAN', { recordedLedger: 100, lookedUpLedger: 100 })
  tracker.view.observe(100, 1_000)
  // Nothing is tracked, so nothing else tells the process that ledgers have closed.
  await expect.poll(() => tracker.view.isCurrent()).toBe(false)
  Object.assign(fake, { latestLedger: 120, closedAt: 1_100 })
  expect(await adoptTransfers(db, tracker)).toBe(1)
  const settled = { status: 'expired', settledAt: new Date() } as const
  await db.update(transfers).set(settled).where(eq(transfers.id, orphan.id))
  await tracker.stop()
})

test('a process that was idle looks up transfers in pages once a lookup has shown the ledger', async () => {
  const open = []
  for (const number of [1, 2, 3, 4, 5]) {
    const transfer = await record(`GPAYER${number}`, { recordedLedger: 119, lookedUpLedger: 119 })
    const [innerHash, outerHash] = [`${number}`.repeat(64), `${number + 5}`.repeat(64).slice(0, 64)]
    await insertRows(db, {
      envelopes: [envelopeRow({ transfer: transfer.id, innerHash, outerHash, maxTime: 4_000_000_000 })],
    })
    open.push(transfer)
  }
  tracker.view.observe(20, 1_000)
  const latest = { latestLedger: 120, latestLedgerCloseTime: '1100', latestLedgerCloseTimestamp: 1_100 }
  const range = { oldestLedger: 1, oldestLedgerCloseTime: '1', oldestLedgerCloseTimestamp: 1 }
  Object.assign(fake, {
    result: { ...latest, ...range, status: 'NOT_FOUND', transactions: [], cursor: '' },
    methods: [],
  })
  const outcomes = open.map((transfer) => waitFor(transfer, 60_000))
  const lookedUp = async () => (await db.select().from(transfers)).map(({ lookedUpLedger }) => lookedUpLedger)
  await expect.poll(lookedUp).toEqual([120, 120, 120, 120, 120])
  expect(fake.methods.filter((method) => method === 'getTransaction')).toHaveLength(1)
  await db.update(transfers).set({ status: 'expired', settledAt: new Date() })
  for (const outcome of outcomes) expect((await outcome)?.kind).toBe('settled')
  fake.result = undefined
})

test('a new process adopts every open transfer', async () => {
  await record('GNEW', { recordedLedger: 120, lookedUpLedger: 120 })
  Object.assign(fake, { latestLedger: 120, closedAt: 1_100 })
  expect(await adoptTransfers(db, tracker)).toBe(1)
  await tracker.stop()
})

test('adopts 1,000 transfers in a round, and then those that it does not track yet', async () => {
  const rows = Array.from({ length: 1_002 }, (_, n) => transferRow({ account: `G${n}`, createdAt: new Date(n) }))
  await insertRows(db, { transfers: rows })
  Object.assign(fake, { latestLedger: 120, closedAt: 1_100 })
  expect(await adoptTransfers(db, tracker)).toBe(1_000)
  expect(await adoptTransfers(db, tracker)).toBe(2)
  expect(await adoptTransfers(db, tracker)).toBe(0)
  await tracker.stop()
})

test('does not adopt a transfer that another process looks up', async () => {
  tracker.view.observe(100, 1_000)
  await expect.poll(() => tracker.view.isCurrent()).toBe(false)
  await record('GOTHER', { recordedLedger: 100, lookedUpLedger: 119 })
  Object.assign(fake, { latestLedger: 120, closedAt: 1_100 })
  expect(await adoptTransfers(db, tracker)).toBe(0)
})

test.each([
  ['above the latest known ledger', { refusedLedger: 120, sentLedger: 120 }, undefined],
  ['of the latest ledger', { refusedLedger: 100, sentLedger: 100 }, undefined],
  ['that was not repeated since', { refusedLedger: 98, sentLedger: 98 }, undefined],
  ['repeated after two ledgers', { refusedLedger: 98, sentLedger: 100 }, 'txBadSeq'],
])('takes a contested refusal %s as final only if it was repeated after two ledgers', (_, ledgers, resultCode) => {
  const view = silentView()
  view.observe(100, 1_000)
  const envelope = { innerHash: 'inner', resultCode: 'txBadSeq', isSendable: true, ...ledgers } as Envelope
  expect(refusalOf('inner', [envelope], view)?.resultCode).toBe(resultCode)
})

test('takes a contested refusal as final after two ledgers in which a rival was submitted instead', () => {
  const view = silentView()
  view.observe(100, 1_000)
  const isRefused = { resultCode: 'txBadSeq', refusedLedger: 98, sentLedger: 98 }
  const envelope = { innerHash: 'inner', isSendable: true, ...isRefused } as Envelope
  const rival = { innerHash: 'rival', isSendable: true, resultCode: null } as Envelope
  expect(refusalOf('inner', [envelope, rival], view)).toMatchObject({ resultCode: 'txBadSeq', hasRival: true })
})
