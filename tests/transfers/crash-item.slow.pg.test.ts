import { eq } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { transfers } from '#drizzle/schema/transfers.ts'
import { startChild } from '../relay/relay-child.ts'
import { openRelayService, type RelayService } from '../relay/relay-service.ts'
import { type NamedStep, openSteps, type Steps } from './crash-steps.ts'

let fixture: RelayService
let steps: Steps
let watcher: Client
beforeAll(async () => {
  fixture = await openRelayService({ channels: 1 })
  watcher = new Client({ connectionString: fixture.database.url })
  await watcher.connect()
  steps = await openSteps(fixture.ledger.proxy, fixture.database.url)
})
afterAll(async () => {
  await steps?.close()
  await watcher?.end()
  await fixture?.close()
})
afterEach(() => fixture.ledger.proxy.rule(null))

type Job = Promise<string>
const lockItem = async (job: Job) => `SELECT 1 FROM batch_items WHERE job = '${await job}' FOR UPDATE`
const lockJob = async (job: Job) => `SELECT 1 FROM batch_jobs WHERE id = '${await job}' FOR UPDATE`
const LOCK_CHANNEL = 'SELECT 1 FROM relay_channels FOR UPDATE'
const lockTransfer = async (job: Job) =>
  `SELECT 1 FROM transfers WHERE id = (SELECT transfer FROM envelopes JOIN batch_items USING (inner_hash) WHERE job = '${await job}') FOR UPDATE`

const before = (nth = 1) => ({ delivered: false, nth })
const after = (nth = 1) => ({ delivered: true, nth })

// An item's calls in their order. Entries: the channel, the two parties, the sequence number, the sponsor's balance.
// Simulations: the auditor's key, the transfer as the wallet runs it, the transfer as the sponsor runs it.
const STEPS: NamedStep<Job>[] = [
  ['before the channel is looked at', ({ atCall }) => atCall('getLedgerEntries', before())],
  ['with the item taken, before the parties are read', ({ atCall }) => atCall('getLedgerEntries', before(2))],
  ['before the auditor is known', ({ atCall }) => atCall('simulateTransaction', after())],
  ['before the sequence number is read', ({ atCall }) => atCall('getLedgerEntries', before(3))],
  ['before the wallet has simulated it', ({ atCall }) => atCall('simulateTransaction', after(2))],
  [
    'before the signed transfer is stored',
    ({ atLock }, job) => atLock(lockItem(job), { from: 'simulateTransaction', nth: 2 }),
  ],
  [
    'with the signed transfer stored, before the sponsor sees it',
    ({ atCall }) => atCall('simulateTransaction', before(3)),
  ],
  [
    'before the sponsor is bound to it',
    ({ atLock }, job) => atLock(lockItem(job), { from: 'simulateTransaction', nth: 3 }),
  ],
  ['after the sponsor is bound to it, before it is sent', ({ atCall }) => atCall('sendTransaction', before())],
  ['after it is sent, before the answer', ({ atCall }) => atCall('sendTransaction', after())],
  ['before the row says that it was sent', ({ atLock }, job) => atLock(lockTransfer(job), { from: 'sendTransaction' })],
  ['before the first look', ({ atCall }) => atCall('getTransaction', before())],
  ['before the transfer is settled', ({ atLock }, job) => atLock(lockTransfer(job), { from: 'getTransaction' })],
  [
    'with the transfer settled, before the item is',
    ({ atLock }, job) => atLock(lockJob(job), { from: 'sendTransaction' }),
  ],
  ['in the middle of settling the item', ({ atLock }) => atLock(LOCK_CHANNEL, { from: 'sendTransaction' })],
]

test.each(STEPS)('SIGKILL %s: another relay takes over, and the item is paid once', async (_, step) => {
  const client = await fixture.client()
  const payee = await fixture.payee()
  await fixture.hire(client, [payee.signer.publicKey()])
  const relay = await startChild(fixture.variables)
  // The first job takes the channel's balance from the ledger; the calls of the second are counted.
  const warm = await fixture.post(client, { amounts: [5] })
  expect(await fixture.ended(client, String(warm.body.jobId))).toMatchObject({ status: 'completed' })
  // The step counts the calls before the job exists: the relay may be faster than the response to the client.
  const job = Promise.withResolvers<string>()
  const { reached, letGo } = step(steps, job.promise)
  const jobId = await fixture.begin(client, 7)
  job.resolve(jobId)
  await reached
  await relay.kill()
  await letGo()
  // As if the ten seconds without a heartbeat had passed already.
  await watcher.query(`UPDATE pgboss.job SET heartbeat_on = heartbeat_on - interval '10 s' WHERE state = 'active'`)
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })

  const other = await fixture.relay()
  try {
    const ended = await fixture.ended(client, jobId)
    expect(ended).toMatchObject({ status: 'completed', results: [{ i: 0, status: 'SUCCESS' }] })
    expect(await fixture.received(payee)).toBe(12n)
    const rows = await fixture.db.select().from(transfers).where(eq(transfers.recipient, payee.signer.publicKey()))
    expect(rows.filter(({ status }) => status === 'succeeded')).toHaveLength(2)
    expect(rows.some(({ status }) => status === 'open')).toBe(false)
    expect(rows.map(({ quotaAccount }) => quotaAccount)).toEqual(rows.map(() => client.address))
    const quotas = await fixture.db.query.quotas.findMany()
    expect(quotas.find(({ account }) => account === client.address)).toMatchObject({ held: 0n, count: 2 })
  } finally {
    await other.close()
  }
})
