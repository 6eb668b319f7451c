import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { expireLeases, startMortalRelay } from '../relay/mortal-relay.ts'
import { openRelayService, type RelayService } from '../relay/relay-service.ts'
import { expectJobPaidOnce, quotaOf } from '../support/paid-once.ts'
import { killAt, type NamedStep, openSteps, type Steps } from './crash-steps.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let fixture: RelayService
let steps: Steps
beforeAll(async () => {
  // The chore `transfers` would settle the transfer of a relay that was killed.
  fixture = await openRelayService({ channels: 1, choresEveryMs: 0 })
  steps = await openSteps(fixture.ledger.proxy, fixture.database.url)
})
afterAll(async () => {
  await steps?.close()
  await fixture?.close()
})
afterEach(() => fixture.ledger.proxy.rule(null))

type Job = Promise<string>
const lockLine = async (job: Job) => `SELECT 1 FROM relay_lines WHERE job = '${await job}' FOR UPDATE`
const lockJob = async (job: Job) => `SELECT 1 FROM relay_jobs WHERE id = '${await job}' FOR UPDATE`
const lockTransfer = async (job: Job) => `SELECT 1 FROM transfers WHERE line_job = '${await job}' FOR UPDATE`
const lockEnvelope = async (job: Job) => `SELECT 1 FROM envelopes JOIN transfers ON transfers.id = envelopes.transfer
  WHERE line_job = '${await job}' FOR UPDATE OF envelopes`
const lockQuota = async (job: Job) => `SELECT 1 FROM quotas JOIN relay_jobs ON relay_jobs.user_sub = quotas.account
  WHERE relay_jobs.id = '${await job}' FOR UPDATE OF quotas`
const LOCK_TRANSFERS = 'LOCK TABLE transfers IN EXCLUSIVE MODE'
const LOCK_CHANNEL = 'SELECT 1 FROM relay_channels FOR UPDATE'

// A line's calls in their order. Entries: the channel, the two parties, the sequence number, the sponsor's balance.
// Simulations: the auditor's key, the transfer as the wallet runs it, the transfer as the sponsor runs it.
const SIGNED = { from: 'simulateTransaction', nth: 3 }
const SENT = { from: 'sendTransaction' }
const STEPS: NamedStep<Job>[] = [
  ['with the line leased, before the past payments are read', ({ beforeCall }) => beforeCall('getEvents')],
  ['before the channel is looked at', ({ beforeCall }) => beforeCall('getLedgerEntries')],
  ['before the parties are read', ({ beforeCall }) => beforeCall('getLedgerEntries', { nth: 2 })],
  ['before the auditor is known', ({ afterCall }) => afterCall('simulateTransaction')],
  ['before the sequence number is read', ({ beforeCall }) => beforeCall('getLedgerEntries', { nth: 3 })],
  ['before the wallet has simulated it', ({ afterCall }) => afterCall('simulateTransaction', { nth: 2 })],
  ['with the transfer signed, before the sponsor sees it', ({ beforeCall }) => beforeCall(SIGNED.from, SIGNED)],
  ['before the line is claimed for the transfer', ({ atLock }, job) => atLock(lockLine(job), SIGNED)],
  ['with the line claimed, before the transfer is recorded', ({ atLock }) => atLock(LOCK_TRANSFERS, SIGNED)],
  ['with the transfer recorded, before its cost is reserved', ({ atLock }, job) => atLock(lockQuota(job), SIGNED)],
  ['after the sponsor is bound to it, before it is sent', ({ beforeCall }) => beforeCall('sendTransaction')],
  ['after it is sent, before the answer', ({ afterCall }) => afterCall('sendTransaction')],
  ['before the row says that it was sent', ({ atLock }, job) => atLock(lockEnvelope(job), SENT)],
  ['before the first look', ({ beforeCall }) => beforeCall('getTransaction')],
  ['before the transfer is settled', ({ atLock }, job) => atLock(lockTransfer(job), { from: 'getTransaction' })],
  ['between the transfer and the line of the settlement', ({ atLock }, job) => atLock(lockLine(job), SENT)],
  ['between the line and the job of the settlement', ({ atLock }, job) => atLock(lockJob(job), SENT)],
  ['between the job and the channel of the settlement', ({ atLock }) => atLock(LOCK_CHANNEL, SENT)],
  ['between the channel and the quota of the settlement', ({ atLock }, job) => atLock(lockQuota(job), SENT)],
]

test.each(STEPS)('ends %s: another relay takes over, and the line is paid once', async (_, step) => {
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
  await expireLeases(fixture.db)
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })

  await using _other = await fixture.relay()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 12n])
  const rows = await fixture.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.recipient, payee.address) })
  expect(rows.map(({ quotaAccount }) => quotaAccount)).toEqual(rows.map(() => client.address))
  expect(await quotaOf(fixture, client.address)).toMatchObject({ count: 2 })
  expect(await findDiscrepancies(fixture.db)).toEqual([])
})

test('leaves the line of a killed relay to the others when its lease ends', async () => {
  const { client, payee } = await fixture.engaged()
  const relay = await startMortalRelay(fixture.variables)
  await expectJobPaidOnce(fixture, client, await fixture.begin(client, 5), [payee, 5n])
  const reached = steps.beforeCall('simulateTransaction')
  const jobId = await fixture.begin(client, 7)
  await killAt(reached, relay)
  const readLine = () => fixture.db.query.relayLines.findFirst({ where: (line, { eq }) => eq(line.job, jobId) })
  const leasedUntil = (await readLine())?.leasedUntil
  expect(leasedUntil).toBeInstanceOf(Date)
  await using _other = await fixture.relay()
  await expectJobPaidOnce(fixture, client, jobId, [payee, 12n])
  expect((await readLine())?.sentAt?.getTime()).toBeGreaterThan(leasedUntil?.getTime() ?? Number.POSITIVE_INFINITY)
})
