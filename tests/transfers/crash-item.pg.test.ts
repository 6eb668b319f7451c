import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { expireHeartbeats, startMortalRelay } from '../relay/mortal-relay.ts'
import { openRelayService, type RelayService } from '../relay/relay-service.ts'
import { expectJobPaidOnce, quotaOf } from '../support/paid-once.ts'
import { killAt, type NamedStep, openSteps, type Steps } from './crash-steps.ts'

let fixture: RelayService
let steps: Steps
beforeAll(async () => {
  // The chore `items` would end an item whose relay was killed.
  fixture = await openRelayService({ channels: 1, choresEveryMs: 0 })
  steps = await openSteps(fixture.ledger.proxy, fixture.database.url)
})
afterAll(async () => {
  await steps?.close()
  await fixture?.close()
})
afterEach(() => fixture.ledger.proxy.rule(null))

type Job = Promise<string>
const lockItem = async (job: Job) => `SELECT 1 FROM batch_items WHERE job = '${await job}' FOR UPDATE`
const lockJob = async (job: Job) => `SELECT 1 FROM batch_jobs WHERE id = '${await job}' FOR UPDATE`
const LOCK_CHANNEL = 'SELECT 1 FROM relay_channels FOR UPDATE'
const lockTransfer = async (job: Job) =>
  `SELECT 1 FROM transfers WHERE id = (SELECT transfer FROM envelopes JOIN batch_items USING (inner_hash) WHERE job = '${await job}') FOR UPDATE`

// An item's calls in their order. Entries: the channel, the two parties, the sequence number, the sponsor's balance.
// Simulations: the auditor's key, the transfer as the wallet runs it, the transfer as the sponsor runs it.
const STEPS: NamedStep<Job>[] = [
  ['before the channel is looked at', ({ beforeCall }) => beforeCall('getLedgerEntries')],
  ['with the item taken, before the parties are read', ({ beforeCall }) => beforeCall('getLedgerEntries', { nth: 2 })],
  ['before the auditor is known', ({ afterCall }) => afterCall('simulateTransaction')],
  ['before the sequence number is read', ({ beforeCall }) => beforeCall('getLedgerEntries', { nth: 3 })],
  ['before the wallet has simulated it', ({ afterCall }) => afterCall('simulateTransaction', { nth: 2 })],
  [
    'before the signed transfer is stored',
    ({ atLock }, job) => atLock(lockItem(job), { from: 'simulateTransaction', nth: 2 }),
  ],
  [
    'with the signed transfer stored, before the sponsor sees it',
    ({ beforeCall }) => beforeCall('simulateTransaction', { nth: 3 }),
  ],
  [
    'before the sponsor is bound to it',
    ({ atLock }, job) => atLock(lockItem(job), { from: 'simulateTransaction', nth: 3 }),
  ],
  ['after the sponsor is bound to it, before it is sent', ({ beforeCall }) => beforeCall('sendTransaction')],
  ['after it is sent, before the answer', ({ afterCall }) => afterCall('sendTransaction')],
  ['before the row says that it was sent', ({ atLock }, job) => atLock(lockTransfer(job), { from: 'sendTransaction' })],
  ['before the first look', ({ beforeCall }) => beforeCall('getTransaction')],
  ['before the transfer is settled', ({ atLock }, job) => atLock(lockTransfer(job), { from: 'getTransaction' })],
  [
    'with the transfer settled, before the item is',
    ({ atLock }, job) => atLock(lockJob(job), { from: 'sendTransaction' }),
  ],
  ['in the middle of settling the item', ({ atLock }) => atLock(LOCK_CHANNEL, { from: 'sendTransaction' })],
]

test.each(STEPS)('ends %s: another relay takes over, and the item is paid once', async (_, step) => {
  const { client, payee } = await fixture.engaged()
  const relay = await startMortalRelay(fixture.variables)
  // The first job takes the channel's balance from the ledger; the calls of the second are counted.
  await expectJobPaidOnce(fixture, client, await fixture.begin(client, 5), [payee, 5n])
  // The step counts the calls before the job exists: the relay may be faster than the response to the client.
  const job = Promise.withResolvers<string>()
  const reached = step(steps, job.promise)
  const jobId = await fixture.begin(client, 7)
  job.resolve(jobId)
  await killAt(reached, relay)
  await expireHeartbeats(fixture.db)
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })

  await using _other = await fixture.relay()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 12n])
  const rows = await fixture.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.recipient, payee.address) })
  expect(rows.map(({ quotaAccount }) => quotaAccount)).toEqual(rows.map(() => client.address))
  expect(await quotaOf(fixture, client.address)).toMatchObject({ count: 2 })
})
