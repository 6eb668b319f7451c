import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { expireLeases, startMortalRelay } from '../relay/mortal-relay.ts'
import { openRelayService, type RelayService } from '../relay/relay-service.ts'
import { openRunFixture, type RunBatch, type RunFixture } from '../relay/run-fixture.ts'
import { expectRunPaidOnce, quotaOf } from '../support/paid-once.ts'
import { killAt, type NamedStep, openSteps, type Steps } from './crash-steps.ts'

let service: RelayService
let runs: RunFixture
let steps: Steps
beforeAll(async () => {
  // The chore `transfers` would settle the transfer of a relay that was killed.
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

// Either line may have the channel first. The other one is proved ahead, and chained to it.
const lockLines = (batch: RunBatch) => `SELECT 1 FROM relay_lines JOIN relay_jobs ON relay_jobs.id = relay_lines.job
  WHERE batch = '${batch.id}' FOR UPDATE OF relay_lines`
const lockJob = (batch: RunBatch) => `SELECT 1 FROM relay_jobs WHERE batch = '${batch.id}' FOR UPDATE`
const lockBatch = (batch: RunBatch) => `SELECT 1 FROM batches WHERE id = '${batch.id}' FOR UPDATE`
const LOCK_TRANSFERS = 'LOCK TABLE transfers IN EXCLUSIVE MODE'
const LOCK_ENVELOPE = `SELECT 1 FROM envelopes JOIN transfers ON transfers.id = envelopes.transfer
  WHERE transfers.status = 'open' FOR UPDATE OF envelopes`
const lockQuota = ({ employer }: RunBatch) => `SELECT 1 FROM quotas WHERE account = '${employer.address}' FOR UPDATE`

// Simulations: the auditor's key, and each payment. The sponsor uses the relay's and reads the channel's account.
const SIMULATED = { method: 'simulateTransaction', nth: 2 }
const SIGNED = { from: 'simulateTransaction', nth: 2 }
const CHAINED = { method: 'simulateTransaction', nth: 3 }
const CHAINED_SIGNED = { from: 'simulateTransaction', nth: 3 }
const SENT = { from: 'sendTransaction' }
const STEPS: NamedStep<RunBatch>[] = [
  ['with a line leased, before the past payments are read', ({ beforeCall }) => beforeCall('getEvents')],
  ['before the delegation is read', ({ beforeCall }) => beforeCall('getLedgerEntries')],
  ['before the auditor is known', ({ beforeCall }) => beforeCall('simulateTransaction')],
  ['before the wallet has simulated it', ({ afterCall }) => afterCall('simulateTransaction', { nth: 2 })],
  [
    'with the payment signed, before the sponsor sees it',
    ({ beforeCall }) => beforeCall('getLedgerEntries', { since: SIMULATED }),
  ],
  ['before the line is claimed for the payment', ({ atLock }, batch) => atLock(lockLines(batch), SIGNED)],
  ['with the line claimed, before the payment is recorded', ({ atLock }) => atLock(LOCK_TRANSFERS, SIGNED)],
  ['before the payout is claimed', ({ atLock }, batch) => atLock(lockBatch(batch), SIGNED)],
  ['with the payout claimed, before the cost is reserved', ({ atLock }, batch) => atLock(lockQuota(batch), SIGNED)],
  ['after the sponsor is bound to it, before it is sent', ({ beforeCall }) => beforeCall('sendTransaction')],
  ['after it is sent, before the answer', ({ afterCall }) => afterCall('sendTransaction')],
  ['before the row says that it was sent', ({ atLock }) => atLock(LOCK_ENVELOPE, SENT)],
  ['between the transfer and the line of the settlement', ({ atLock }, batch) => atLock(lockLines(batch), SENT)],
  ['between the line and the payout of the settlement', ({ atLock }, batch) => atLock(lockBatch(batch), SENT)],
  ['between the payout and the job of the settlement', ({ atLock }, batch) => atLock(lockJob(batch), SENT)],
  ['between the job and the quota of the settlement', ({ atLock }, batch) => atLock(lockQuota(batch), SENT)],
  [
    'before the line of the chained payment is claimed',
    ({ atLock }, batch) => atLock(lockLines(batch), CHAINED_SIGNED),
  ],
  ['before the chained payment is recorded', ({ atLock }) => atLock(LOCK_TRANSFERS, CHAINED_SIGNED)],
  ['after the chained payment is sent', ({ afterCall }) => afterCall('sendTransaction', { since: CHAINED })],
]

test.each(STEPS)('ends %s: another relay takes over, and each payout is paid once', async (_, step) => {
  const employer = await runs.employer()
  const batch = await runs.batchOf(employer, [7n, 8n])
  await runs.delegate(employer, 15n)
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  // The calls of the service and of a relay that starts are not counted: a line is leased once the channel is resumed.
  await service.db.update(relayChannels).set({ paused: true, seenAt: new Date(0) })
  const killed = await startMortalRelay(service.variables)
  const isSeen = async () => (await service.db.query.relayChannels.findMany()).every((one) => one.seenAt.getTime() > 0)
  await vi.waitUntil(isSeen, { timeout: 300_000 })
  const reached = step(steps, batch)
  await service.db.update(relayChannels).set({ paused: false })
  await killAt(reached, killed)
  await expireLeases(service.db)

  await using _other = await service.relay()
  await expectRunPaidOnce(runs, batch, [7n, 8n])
  expect(await runs.linesOf(batch)).toMatchObject([{ outcome: 'paid' }, { outcome: 'paid' }])
  expect(await quotaOf(service, employer.address)).toMatchObject({ count: 2 })
  await runs.revoke(employer)
})
