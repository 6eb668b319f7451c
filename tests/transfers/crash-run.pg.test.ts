import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { expireHeartbeats, startMortalRelay } from '../relay/mortal-relay.ts'
import { openRelayService, type RelayService } from '../relay/relay-service.ts'
import { openRunFixture, type RunBatch, type RunFixture } from '../relay/run-fixture.ts'
import { expectRunPaidOnce, quotaOf } from '../support/paid-once.ts'
import { killAt, type NamedStep, openSteps, type Steps } from './crash-steps.ts'

let service: RelayService
let runs: RunFixture
let steps: Steps
beforeAll(async () => {
  // The chore `items` would end an item whose relay was killed.
  service = await openRelayService({ channels: 1, choresEveryMs: 0 })
  runs = openRunFixture(service)
  steps = await openSteps(service.ledger.proxy, service.database.url)
  await using _relay = await service.relay()
  const areAnnounced = async () => (await service.db.query.relayChannels.findMany()).every((one) => one.runs)
  await vi.waitUntil(areAnnounced, { timeout: 300_000 })
})
afterAll(async () => {
  await steps?.close()
  await service?.close()
})
afterEach(() => service.ledger.proxy.rule(null))

// Either item may have the channel first. The other one is proved ahead, and chained to it.
const LOCK_ITEM = `SELECT 1 FROM batch_items item JOIN relay_channels channel
  ON channel.item_job = item.job AND channel.item_position = item.position FOR UPDATE OF item`
const lockJob = (batch: RunBatch) => `SELECT 1 FROM batch_jobs WHERE batch = '${batch.id}' FOR UPDATE`
const lockBatch = (batch: RunBatch) => `SELECT 1 FROM batches WHERE id = '${batch.id}' FOR UPDATE`
const LOCK_TRANSFER = `SELECT 1 FROM transfers WHERE status = 'open' FOR UPDATE`
const LOCK_CHANNEL = 'SELECT 1 FROM relay_channels FOR UPDATE'

// Simulations: the auditor's key, and each payment. The sponsor uses the relay's and reads the channel's account.
const SIMULATED = { method: 'simulateTransaction', nth: 2 }
const CHAINED = { method: 'simulateTransaction', nth: 3 }
const STEPS: NamedStep<RunBatch>[] = [
  ['before the delegation is read', ({ beforeCall }) => beforeCall('getLedgerEntries')],
  ['before the auditor is known', ({ beforeCall }) => beforeCall('simulateTransaction')],
  ['before the wallet has simulated it', ({ afterCall }) => afterCall('simulateTransaction', { nth: 2 })],
  ['before the signed payment is stored', ({ atLock }) => atLock(LOCK_ITEM, { from: 'simulateTransaction', nth: 2 })],
  [
    'with the signed payment stored, before the sponsor sees it',
    ({ beforeCall }) => beforeCall('getLedgerEntries', { since: SIMULATED }),
  ],
  [
    'before the payout is claimed',
    ({ atLock }, batch) => atLock(lockBatch(batch), { from: 'simulateTransaction', nth: 2 }),
  ],
  ['after the sponsor is bound to it, before it is sent', ({ beforeCall }) => beforeCall('sendTransaction')],
  ['after it is sent, before the answer', ({ afterCall }) => afterCall('sendTransaction')],
  ['before the row says that it was sent', ({ atLock }) => atLock(LOCK_TRANSFER, { from: 'sendTransaction' })],
  ['before the payout is settled', ({ atLock }, batch) => atLock(lockBatch(batch), { from: 'sendTransaction' })],
  [
    'with the payout settled, before the item is',
    ({ atLock }, batch) => atLock(lockJob(batch), { from: 'sendTransaction' }),
  ],
  ['in the middle of settling the item', ({ atLock }) => atLock(LOCK_CHANNEL, { from: 'sendTransaction' })],
  [
    'before the chained payment is stored',
    ({ atLock }) => atLock(LOCK_ITEM, { from: 'simulateTransaction', nth: CHAINED.nth }),
  ],
  ['after the chained payment is sent', ({ afterCall }) => afterCall('sendTransaction', { since: CHAINED })],
]

test.each(STEPS)('ends %s: another relay takes over, and each payout is paid once', async (_, step) => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [7n, 8n])
  await runs.delegate(employer, 15n)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  // The calls of the service and of a relay that starts are not counted: the item is taken once the channel is resumed.
  await service.db.update(relayChannels).set({ paused: true, seenAt: new Date(0) })
  const killed = await startMortalRelay(service.variables)
  const isSeen = async () => (await service.db.query.relayChannels.findMany()).every((one) => one.seenAt.getTime() > 0)
  await vi.waitUntil(isSeen, { timeout: 300_000 })
  const reached = step(steps, batch)
  await service.db.update(relayChannels).set({ paused: false })
  await killAt(reached, killed)
  await expireHeartbeats(service.db)

  await using _other = await service.relay()
  await expectRunPaidOnce(runs, batch, [7n, 8n])
  expect(await runs.itemsOf(batch)).toMatchObject([{ status: 'paid' }, { status: 'paid' }])
  expect(await quotaOf(service, employer.address)).toMatchObject({ count: 2 })
  await runs.revoke(employer)
})
