import { Account, Operation, TransactionBuilder } from '@stellar/stellar-sdk'
import { and, eq, isNull, ne } from 'drizzle-orm'
import { Client as Connection } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { readAttention } from '#lib/dashboard/overview.ts'
import { searchRecords } from '#lib/dashboard/search.ts'
import { isSuspendedBy, recordProblem } from '#lib/relay/channel-state.ts'
import { startJob } from '#lib/relay/job.ts'
import { releaseMoved } from '#lib/relay/moved.ts'
import type { Relay } from '#lib/relay/relay.ts'
import { carryOutReleases, releaseState, requestRelease } from '#lib/relay/release-request.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { readLines } from '../support/lines.ts'
import { expectJobPaidOnce, expectRunPaidOnce } from '../support/paid-once.ts'
import { sendAnswer } from '../support/transfers.ts'
import { openRelayService, type RelayService } from './relay-service.ts'
import { openRunFixture } from './run-fixture.ts'

let fixture: RelayService
let relay: Relay
let connection: Connection
beforeAll(async () => {
  fixture = await openRelayService({ channels: 2 })
  relay = await composeRelay(fixture.running)
  connection = new Connection({ connectionString: fixture.database.url })
  await connection.connect()
})
afterAll(async () => {
  await connection?.end()
  await fixture?.close()
})
afterEach(async () => {
  fixture.ledger.proxy.rule(null)
  await fixture.db.update(relayChannels).set({ paused: false })
})

const TABLES = [
  'batches',
  'payouts',
  'relay_jobs',
  'relay_lines',
  'relay_channels',
  'transfers',
  'envelopes',
  'quotas',
  'sponsor_floats',
]

/** Copies every table that a relay writes; the returned function puts the rows back, as a restore from a backup does. */
async function backUp(): Promise<() => Promise<void>> {
  await connection.query('DROP SCHEMA IF EXISTS backup CASCADE; CREATE SCHEMA backup')
  for (const table of TABLES) await connection.query(`CREATE TABLE backup.${table} AS TABLE ${table}`)
  return async () => {
    await connection.query('BEGIN')
    await connection.query('SET LOCAL session_replication_role = replica')
    for (const table of TABLES) {
      await connection.query(`DELETE FROM ${table}`)
      await connection.query(`INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM backup.${table}`)
    }
    await connection.query('COMMIT')
  }
}

const readChannels = () => fixture.db.query.relayChannels.findMany()
const findMoved = async () => (await readChannels()).filter(({ problem }) => problem === 'moved')
const linesOf = (job: string) => readLines(fixture.db, eq(relayLines.job, job))
const statesOf = async (job: string) => (await linesOf(job)).map(({ state }) => state)
const transfersOf = (job: string) =>
  fixture.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.lineJob, job), orderBy: (row) => row.sequence })
/** The hashes of the transactions that have paid a job's lines: of the channel’s, and of its fee bump. */
const paymentsOf = async (job: string) =>
  (await transfersOf(job)).flatMap(({ status, applied, hash }) => (status === 'succeeded' ? `${applied} ${hash}` : []))
const releasesOf = (address: string) =>
  fixture.db.query.auditLog.findMany({
    where: (row, { and, eq, like }) => and(eq(row.subjectId, address), like(row.action, 'channel.%')),
    orderBy: (row) => row.sequence,
  })

/** Asks for a release as an operator at the dashboard does. */
const request = (address: string, note: string) =>
  requestRelease(
    { db: fixture.db, now: new Date(), actor: { kind: 'operator', sub: 'Ada' } },
    { token: relay.token, address, note },
  )

/** Resolves after this many ledgers. */
async function pass(ledgers: number): Promise<void> {
  const read = async () => (await fixture.ledger.network.rpc.getLatestLedger()).sequence
  const first = await read()
  await expect.poll(read).toBeGreaterThanOrEqual(first + ledgers)
}

/** Signs and submits a transaction with a channel's key, without the relay. */
async function signElsewhere(index: number): Promise<string> {
  const signer = fixture.channels[index]
  if (!signer) throw new Error('no such channel')
  const source = await fixture.ledger.network.rpc.getAccount(signer.publicKey())
  const bumpTo = String(BigInt(source.sequenceNumber()) + 5n)
  const { passphrase: networkPassphrase } = fixture.ledger.network
  const transaction = new TransactionBuilder(source, { fee: '100', networkPassphrase })
    .addOperation(Operation.bumpSequence({ bumpTo }))
    .setTimeout(60)
    .build()
  transaction.sign(signer)
  await sendAndWait(fixture.ledger.network, transaction.toXdr())
  return signer.publicKey()
}

test('does not pay a line again after a restore, and settles it when its channel is released', async () => {
  const { client, payee } = await fixture.engaged()
  {
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, client, await fixture.begin(client, 1, 2), [payee, 3n])
  }
  const job = await fixture.begin(client, 4, 8)
  const restore = await backUp()
  {
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, client, job, [payee, 15n])
  }
  const paid = await paymentsOf(job)
  await restore()
  expect(await statesOf(job)).toEqual(['waiting', 'waiting'])
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  await pass(20)
  expect(await statesOf(job)).toEqual(['waiting', 'waiting'])
  expect(await fixture.received(payee)).toBe(15n)
  const moved = await findMoved()
  for (const { address } of moved) {
    const note = { note: 'the old relays were stopped' }
    expect(await request(address, note.note)).toBe(true)
    await expect.poll(async () => (await findMoved()).map((channel) => channel.address)).not.toContain(address)
    expect(await releasesOf(address)).toMatchObject([
      { actorKind: 'operator', actorSub: 'Ada', action: 'channel.release-requested', detail: note },
      { actorKind: 'operator', actorSub: 'Ada', action: 'channel.released', detail: { verified: true, ...note } },
    ])
  }
  const settled = await Promise.all(
    moved.map(async ({ address }) => (await releasesOf(address)).at(-1)?.detail.settled),
  )
  expect(settled.reduce((sum: number, count) => sum + Number(count), 0)).toBe(2)
  await expectJobPaidOnce(fixture, client, job, [payee, 15n])
  expect(new Set(await paymentsOf(job))).toEqual(new Set(paid))
  await expectJobPaidOnce(fixture, client, await fixture.begin(client, 16), [payee, 31n])
})

test('records the fees of the payments that it finds, even if the sponsor pays for none now', async () => {
  const { client, payee } = await fixture.engaged()
  const job = await fixture.begin(client, 5, 6)
  const restore = await backUp()
  {
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, client, job, [payee, 11n])
  }
  const costsOf = async () => {
    const rows = await fixture.db.query.transfers.findMany({
      where: (row, { and, eq }) => and(eq(row.recipient, payee.address), eq(row.status, 'succeeded')),
      orderBy: (row) => row.hash,
    })
    return rows.map(({ hash, sponsor, feeCharged, quotaAccount }) => ({ hash, sponsor, feeCharged, quotaAccount }))
  }
  const costs = await costsOf()
  expect(costs.map(({ feeCharged }) => Number(feeCharged) > 0)).toEqual([true, true])
  await restore()
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  const strict = { ...relay.sponsor, rules: { ...relay.sponsor.rules, contracts: new Set<string>(), maxFee: 1n } }
  for (const { address } of await findMoved()) {
    const released = await releaseMoved({ ...relay, sponsor: strict }, { address, isUnverified: false })
    expect(released).toMatchObject({ recorded: expect.any(Number) })
  }
  expect(await costsOf()).toEqual(costs)
  await expectJobPaidOnce(fixture, client, job, [payee, 11n])
})

test('settles the line that a moved channel has paid, not an older one of the same payee', async () => {
  const { client, payee } = await fixture.engaged()
  const job = await fixture.begin(client, 32, 64)
  const restore = await backUp()
  await connection.query(`UPDATE relay_lines SET due = now() + interval '1 hour' WHERE job = $1 AND position = 0`, [
    job,
  ])
  {
    await using _host = await fixture.relay()
    await expect.poll(() => statesOf(job)).toEqual(['waiting', 'paid'])
  }
  await restore()
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  for (const { address } of await findMoved()) {
    expect(await releaseMoved(relay, { address, isUnverified: false })).toEqual({ recorded: 1, settled: 1 })
  }
  await expectJobPaidOnce(fixture, client, job, [payee, 96n])
})

test('signs nothing for a channel that has moved, even after checks and restarts', async () => {
  const address = await signElsewhere(0)
  const readSequence = async () => (await fixture.ledger.network.rpc.getAccount(address)).sequenceNumber()
  const before = await readSequence()
  for (const round of [1, 2]) {
    await using _host = await fixture.relay()
    await expect.poll(findMoved).toMatchObject([{ address }])
    const { client, payee } = await fixture.engaged()
    await expectJobPaidOnce(fixture, client, await fixture.begin(client, round, 2), [payee, BigInt(round) + 2n])
    expect(await findMoved()).toMatchObject([{ address }])
  }
  expect(await readSequence()).toBe(before)
})

const REQUEST = {
  releaseRequestedAt: expect.any(Date),
  releaseRequestedBy: 'Ada',
  releaseNote: 'after a restore',
  releaseTriedAt: expect.any(Date),
}

test('releases a channel whose history the RPC has lost only with --unverified', async () => {
  const [channel] = await findMoved()
  if (!channel) throw new Error('no channel has moved')
  const { address } = channel
  const { sequence } = await fixture.ledger.network.rpc.getLatestLedger()
  fixture.ledger.proxy.rule(({ method }) =>
    method === 'getHealth' ? { rewrite: (health) => ({ ...health, oldestLedger: sequence }) } : 'pass',
  )
  expect([await request(address, 'after a restore'), await request(address, 'twice')]).toEqual([true, false])
  await carryOutReleases(relay)
  const [refused] = await findMoved()
  expect(refused).toMatchObject({ ...channel, ...REQUEST, releaseRefusal: 'history-too-short' })
  expect(refused && releaseState(refused)).toBe('refused')
  expect((await releasesOf(address)).at(-1)).toMatchObject({
    action: 'channel.release-refused',
    detail: { reason: 'history-too-short' },
  })
  // Nothing retries it until an operator asks again.
  await fixture.db.update(relayChannels).set({ releaseTriedAt: new Date(0) })
  await carryOutReleases(relay)
  expect((await findMoved())[0]?.releaseTriedAt).toEqual(new Date(0))
  expect(await request(address, 'another RPC')).toBe(true)
  expect(await releaseMoved(relay, { address, isUnverified: true })).toEqual({ recorded: 0, settled: 0 })
  const last = (await releasesOf(address)).at(-1)
  expect(last).toMatchObject({ actorSub: 'command line', detail: { verified: false } })
  expect((await readChannels()).map(releaseState)).toEqual(['none', 'none'])
  fixture.ledger.proxy.rule(null)
  await using _host = await fixture.relay()
  await expect.poll(readChannels).toMatchObject([{ problem: null }, { problem: null }])
  const onLedger = (await fixture.ledger.network.rpc.getAccount(address)).sequenceNumber()
  const released = (await readChannels()).find((one) => one.address === address)
  expect(released?.adoptedSequence).toBe(BigInt(onLedger))
})

/** Signs and submits a transaction of a channel that uses this sequence number for nothing. */
async function useNumber(address: string, number: bigint): Promise<void> {
  const signer = fixture.channels.find((channel) => channel.publicKey() === address)
  if (!signer) throw new Error('no such channel')
  const { passphrase: networkPassphrase } = fixture.ledger.network
  const source = new Account(address, String(number - 1n))
  const unknown = new TransactionBuilder(source, { fee: '100', networkPassphrase })
    .addOperation(Operation.manageData({ name: 'unknown', value: '1' }))
    .setTimeout(60)
    .build()
  unknown.sign(signer)
  await sendAndWait(fixture.ledger.network, unknown.toXdr())
}

/** Keeps every transaction from the network until the proxy’s rule changes. */
const withhold = () =>
  fixture.ledger.proxy.rule(({ method }) => (method === 'sendTransaction' ? { answer: sendAnswer('PENDING') } : 'pass'))

/** The open transfers of a job, once there are this many. */
async function openTransfersOf(job: string, count: number) {
  const find = async () => (await transfersOf(job)).filter(({ status }) => status === 'open')
  await expect.poll(find).toHaveLength(count)
  return await find()
}

test.each([
  ['', false],
  [' and it is paused, while another channel is free', true],
])(
  'does not pay a line again whose transfer expired because an unknown transaction used its number%s',
  async (_, isPaused) => {
    const { client, payee } = await fixture.engaged()
    await using _host = await fixture.relay()
    withhold()
    const job = await fixture.begin(client, 128)
    const [transfer] = await openTransfersOf(job, 1)
    if (!transfer) throw new Error('no transfer is open')
    const { account: address, sequenceNumber } = transfer
    await fixture.db.update(relayChannels).set({ paused: isPaused }).where(eq(relayChannels.address, address))
    await useNumber(address, sequenceNumber)
    fixture.ledger.proxy.rule(null)
    await expect.poll(findMoved).toMatchObject([{ address }])
    await pass(20)
    expect(await fixture.received(payee)).toBe(0n)
    expect(await statesOf(job)).toEqual(['waiting'])
    await fixture.db.update(relayChannels).set({ paused: false })
    expect(await releaseMoved(relay, { address, isUnverified: false })).toMatchObject({ settled: 0 })
    await expectJobPaidOnce(fixture, client, job, [payee, 128n])
  },
)

test('settles the transfers that were open at the backup, and finds a later one that is lost', async () => {
  const { client, payee } = await fixture.engaged()
  // Each of the two channels has a transfer open at the backup. One of them pays the third line later.
  const job = await fixture.begin(client, 1, 2, 4)
  let restore: Awaited<ReturnType<typeof backUp>>
  {
    await using _host = await fixture.relay()
    withhold()
    await openTransfersOf(job, 2)
    restore = await backUp()
    fixture.ledger.proxy.rule(null)
    await expectJobPaidOnce(fixture, client, job, [payee, 7n])
  }
  const paid = await paymentsOf(job)
  await restore()
  expect((await statesOf(job)).filter((state) => state === 'sent')).toHaveLength(2)
  await using _host = await fixture.relay()
  await expect.poll(async () => (await statesOf(job)).toSorted()).toEqual(['paid', 'paid', 'waiting'])
  await expect.poll(findMoved).toHaveLength(1)
  await pass(20)
  expect(await fixture.received(payee)).toBe(7n)
  expect(await releaseAll()).toEqual({ recorded: 1, settled: 1 })
  await expectJobPaidOnce(fixture, client, job, [payee, 7n])
  expect(new Set(await paymentsOf(job))).toEqual(new Set(paid))
})

test('does not pay a line again whose transfer in the backup was replaced by one that is lost', async () => {
  const { client, payee } = await fixture.engaged()
  const job = await fixture.begin(client, 8)
  let restore: Awaited<ReturnType<typeof backUp>>
  {
    await using _host = await fixture.relay()
    withhold()
    const [transfer] = await openTransfersOf(job, 1)
    restore = await backUp()
    await fixture.db
      .update(relayChannels)
      .set({ paused: true })
      .where(ne(relayChannels.address, transfer?.account ?? ''))
  }
  // As if it had expired: the channel's next transfer has the same number.
  await fixture.db.delete(transfers).where(eq(transfers.lineJob, job))
  fixture.ledger.proxy.rule(null)
  {
    await using _host = await fixture.relay()
    await expect.poll(() => statesOf(job)).toEqual(['paid'])
  }
  const paid = await paymentsOf(job)
  await restore()
  expect(await statesOf(job)).toEqual(['sent'])
  await using _host = await fixture.relay()
  // The line is found on the ledger when its turn comes, or by the release if the channel is found first.
  const isFound = async () => (await findMoved()).length > 0 || (await statesOf(job))[0] === 'paid'
  await expect.poll(isFound).toBe(true)
  await pass(20)
  expect(await fixture.received(payee)).toBe(8n)
  await releaseAll()
  await expectJobPaidOnce(fixture, client, job, [payee, 8n])
  expect(await paymentsOf(job)).toEqual(paid)
})

test('suspends lines that were queued while a channel was held, if it was released and has paid them since the backup', async () => {
  const address = await signElsewhere(0)
  {
    await using _host = await fixture.relay()
    await expect.poll(findMoved).toMatchObject([{ address }])
  }
  const { client, payee } = await fixture.engaged()
  const job = await fixture.begin(client, 128)
  const restore = await backUp()
  expect(await releaseMoved(relay, { address, isUnverified: false })).toEqual({ recorded: 0, settled: 0 })
  await fixture.db.update(relayChannels).set({ paused: true }).where(ne(relayChannels.address, address))
  {
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, client, job, [payee, 128n])
  }
  await restore()
  await using _host = await fixture.relay()
  await pass(20)
  expect(await releaseAll()).toEqual({ recorded: 1, settled: 1 })
  await expectJobPaidOnce(fixture, client, job, [payee, 128n])
})

test('leases no line before the RPC shows every transaction applied before its start', async () => {
  const { client, payee } = await fixture.engaged()
  const job = await fixture.begin(client, 256)
  // A node that lags by some ledgers.
  const fallBack = (latest: Record<string, unknown>) => ({
    ...latest,
    closeTime: String(Number(latest.closeTime) - 12),
  })
  fixture.ledger.proxy.rule(({ method }) => (method === 'getLatestLedger' ? { rewrite: fallBack } : 'pass'))
  await using _host = await fixture.relay()
  await pass(25)
  expect(await statesOf(job)).toEqual(['waiting'])
  fixture.ledger.proxy.rule(null)
  await expectJobPaidOnce(fixture, client, job, [payee, 256n])
})

test('does not release a channel that is unknown, or has not moved', async () => {
  const [address = ''] = fixture.channels.map((channel) => channel.publicKey())
  expect(await releaseMoved(relay, { address, isUnverified: false })).toBe('not-moved')
  const stranger = fixture.ledger.sponsor.publicKey()
  expect(await releaseMoved(relay, { address: stranger, isUnverified: true })).toBe('unknown-channel')
})

test('suspends a line that a service with a fast clock queued before a channel had moved', async () => {
  const { batch } = fixture.running
  const [channel] = await readChannels()
  if (!batch || !channel) throw new Error('no channel')
  const user = { identity: { kind: 'ledger', sub: channel.address } as const, organisation: undefined }
  const now = new Date(Date.now() + 300_000)
  const { jobId } = await startJob({ db: fixture.db, batch, user, now }, { amounts: [1] })
  await recordProblem(relay, channel.address, 'moved')
  const isSuspended = and(eq(relayLines.job, jobId), isSuspendedBy(relay.token))
  expect(await fixture.db.$count(relayLines, isSuspended)).toBe(1)
  // No later host is to pay it.
  await fixture.db.delete(relayLines).where(eq(relayLines.job, jobId))
  await fixture.db.delete(relayJobs).where(eq(relayJobs.id, jobId))
})

/** Releases every channel that has moved; resolves to how many lines and payments that settled and recorded. */
async function releaseAll(): Promise<{ recorded: number; settled: number }> {
  const sum = { recorded: 0, settled: 0 }
  for (const { address } of await findMoved()) {
    const released = await releaseMoved(relay, { address, isUnverified: false })
    if (typeof released === 'string') throw new Error(released)
    sum.recorded += released.recorded
    sum.settled += released.settled
  }
  return sum
}

/**
 * A batch of two that a run has paid, in a database that is restored to a moment within that run, before it, or before the
 * batch; and the next batch, which has a payout to the first payee.
 */
async function restoreRun(
  moment: 'within the run' | 'before the run' | 'before the seals' | 'while a draft' | 'before the batch',
) {
  const isWithin = moment === 'within the run'
  // As if an operator had released the channels that the tests above have moved.
  await fixture.db.update(relayChannels).set({ problem: null, movedAt: null, movedSequence: null, runs: true })
  await fixture.adoptSequences()
  {
    await using _host = await fixture.relay()
    // A test above leaves a job, whose payment would be one more to record.
    const isIdle = async () => (await fixture.db.query.relayJobs.findMany()).every(({ status }) => status !== 'running')
    await expect.poll(isIdle).toBe(true)
  }
  const runs = openRunFixture(fixture)
  const employer = await runs.employer()
  // Older payouts to the same payees, of other amounts, that stay unpaid.
  const older = await runs.batchOf(employer, [16n, 32n])
  const restoreOlder = moment === 'before the batch' ? await backUp() : undefined
  const batch = await runs.batchOf(employer, [4n, 8n], { like: older })
  const { body: created } = await runs.ask<{ id: string }>(employer, 'POST', '/batches', { name: 'next' })
  const instructions = batch.payouts
    .slice(0, 1)
    .map(({ contractorId }) => ({ contractorId, encryptedAmount: 'to be sealed' }))
  await runs.ask(employer, 'POST', `/batches/${created.id}/instructions`, { instructions })
  await runs.ask(employer, 'POST', `/batches/${created.id}/ready`)
  await runs.delegate(employer, 20n)
  if (isWithin) expect(await runs.run(batch)).toMatchObject({ status: 200 })
  const ids = [batch.id, older.id]
  const seals = batch.payouts.map(({ id, encryptedAmount }) => ({ payoutId: id, encryptedAmount }))
  const areUnsealed = moment === 'before the seals'
  if (areUnsealed) await connection.query(`UPDATE payouts SET encrypted_amount = 'none' WHERE batch = ANY ($1)`, [ids])
  const isDraft = moment === 'while a draft'
  const setStatus = async (status: string) => {
    await connection.query(`UPDATE batches SET status = $2 WHERE id = $1`, [batch.id, status])
    await connection.query(`UPDATE payouts SET status = $2 WHERE batch = $1`, [batch.id, status])
  }
  if (isDraft) await setStatus('draft')
  const restore = restoreOlder ?? (await backUp())
  if (isDraft) await setStatus('ready')
  if (areUnsealed) await runs.ask(employer, 'POST', `/batches/${batch.id}/seals`, { seals })
  if (!isWithin) expect(await runs.run(batch)).toMatchObject({ status: 200 })
  {
    await using _host = await fixture.relay()
    await expectRunPaidOnce(runs, batch, [4n, 8n])
  }
  const paid = (await runs.read(batch)).payouts.map(({ txHash }) => txHash)
  await restore()
  const status = isDraft ? 'draft' : 'ready'
  if (!restoreOlder) expect((await runs.read(batch)).payouts.map((one) => one.status)).toEqual([status, status])
  return { runs, batch, paid, older, next: { id: created.id, employer } }
}

test.each([
  ['within the run', 2],
  ['before the run', 0],
  ['before the seals', 0],
] as const)('does not pay a payout of a run again after a restore to a moment %s', async (moment, settled) => {
  const { runs, batch, paid, older } = await restoreRun(moment)
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  await pass(20)
  expect(await runs.received(batch)).toEqual([4n, 8n])
  const released = await releaseAll()
  expect(released.settled).toBe(settled)
  expect(released.recorded).toBe(2)
  // The payments are recorded for their payouts, also where the restored database lacks the run.
  await expect.poll(async () => (await runs.read(batch)).payouts.map(({ txHash }) => txHash)).toEqual(paid)
  await expectRunPaidOnce(runs, batch, [4n, 8n])
  expect((await runs.read(older)).payouts.map(({ status }) => status)).toEqual(['ready', 'ready'])
})

test.each([
  ['than the backup', []],
  ['than a backup that has some of its transfers', ['transfers']],
])('does not adopt a channel that is newer %s and has paid what the database does not know', async (_, kept) => {
  const { runs, batch, paid } = await restoreRun('before the run')
  if (kept.length === 0) await fixture.db.delete(transfers).where(eq(transfers.account, runs.channel))
  await fixture.db.delete(relayChannels)
  await using _host = await fixture.relay()
  await expect.poll(async () => (await findMoved()).map(({ address }) => address)).toContain(runs.channel)
  await pass(20)
  expect(await runs.received(batch)).toEqual([4n, 8n])
  await releaseAll()
  await expect.poll(async () => (await runs.read(batch)).payouts.map(({ txHash }) => txHash)).toEqual(paid)
  await expect.poll(() => runs.run(batch)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [4n, 8n])
})

test('settles a payout of a run that is a draft in the restored database', async () => {
  const { runs, batch, paid } = await restoreRun('while a draft')
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  expect(await releaseAll()).toEqual({ recorded: 2, settled: 0 })
  const draft = await runs.read(batch)
  expect(draft.status).toBe('draft')
  expect(draft.payouts.map(({ status, txHash }) => `${status} ${txHash}`)).toEqual(paid.map((hash) => `paid ${hash}`))
  const path = `/batches/${batch.id}`
  expect(await runs.ask(batch.employer, 'DELETE', path)).toMatchObject({ status: 409, body: { code: 'batch-sent' } })
  const completed = { status: 'completed', payoutCount: 2, settledCount: 2 }
  expect(await runs.ask(batch.employer, 'POST', `${path}/ready`)).toMatchObject({ status: 200, body: completed })
  expect(await runs.run(batch)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [4n, 8n])
})

test('leaves the other payouts of a draft to be paid after a restore', async () => {
  const { runs, batch, paid } = await restoreRun('while a draft')
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  const [first, second] = batch.payouts
  // Before the release, the employer replaces one of the two payouts: its payment is then recorded for none.
  expect(await runs.ask(batch.employer, 'DELETE', `/payouts/${first?.id}`)).toMatchObject({ status: 200 })
  const instructions = [{ contractorId: first?.contractorId, encryptedAmount: 'to be sealed' }]
  const path = `/batches/${batch.id}`
  expect(await runs.ask(batch.employer, 'POST', `${path}/instructions`, { instructions })).toMatchObject({
    status: 200,
  })
  expect(await releaseAll()).toEqual({ recorded: 2, settled: 0 })
  expect(await runs.ask(batch.employer, 'POST', `${path}/ready`)).toMatchObject({
    status: 200,
    body: { status: 'started', payoutCount: 2, settledCount: 1 },
  })
  const { payouts } = await runs.read(batch)
  expect(payouts.map(({ id, status }) => [id, status]).slice(0, 2)).toEqual([
    [first?.id, 'canceled'],
    [second?.id, 'paid'],
  ])
  expect(payouts.slice(2).map(({ status }) => status)).toEqual(['ready'])
  expect(payouts[1]?.txHash).toBe(paid[1])
})

test('a run settles a payment that a release recorded for no payout', async () => {
  const { runs, batch, paid } = await restoreRun('before the run')
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  // At the release, the payouts are younger than their payments, as if the clock of the service had been ahead.
  const shift = (by: string) =>
    connection.query('UPDATE payouts SET created_at = created_at + $2::interval WHERE batch = $1', [batch.id, by])
  await shift('1 hour')
  expect(await releaseAll()).toEqual({ recorded: 2, settled: 0 })
  expect((await runs.read(batch)).payouts.map(({ status }) => status)).toEqual(['ready', 'ready'])
  await shift('-1 hour')
  await expect.poll(() => runs.run(batch)).toMatchObject({ status: 200 })
  await expectRunPaidOnce(runs, batch, [4n, 8n])
  expect((await runs.read(batch)).payouts.map(({ txHash }) => txHash)).toEqual(paid)
})

test('does not release a channel while a transfer of another one is open for a line that it has paid', async () => {
  const { runs, batch, paid } = await restoreRun('within the run')
  const [line] = await readLines(
    fixture.db,
    and(eq(relayLines.payout, batch.payouts[0]?.id ?? ''), isNull(relayLines.outcome)),
  )
  if (!line) throw new Error('no line waits')
  const [address = '', account] = fixture.channels.map((channel) => channel.publicKey())
  await recordProblem(relay, address, 'moved')
  const ofLine = { lineJob: line.job, linePosition: line.position, recipient: line.recipient ?? '' }
  const open = transferRow({ ...ofLine, kind: 'delegated', account, owner: line.quotaAccount })
  await insertRows(fixture.db, { transfers: [open] })
  expect(await releaseMoved(relay, { address, isUnverified: false })).toBe('transfer-open')
  expect(await releaseMoved(relay, { address, isUnverified: false })).toBe('transfer-open')
  await fixture.db.delete(transfers).where(eq(transfers.id, open.id))
  // The releases before may have settled the other payment, if it was the first.
  const released = await releaseMoved(relay, { address, isUnverified: false })
  expect([1, 2].map((count) => ({ recorded: count, settled: count }))).toContainEqual(released)
  const lines = await runs.linesOf(batch)
  expect(lines.map(({ state, hash }) => `${state} ${hash}`)).toEqual(paid.map((hash) => `paid ${hash}`))
})

test('records the payments of a batch that the restored database lacks for no payout', async () => {
  const { runs, batch, paid, older } = await restoreRun('before the batch')
  expect(await runs.ask(older.employer, 'GET', `/batches/${batch.id}`)).toMatchObject({ status: 404 })
  await using _host = await fixture.relay()
  await expect.poll(findMoved).toMatchObject([{ address: runs.channel }])
  expect(await releaseAll()).toEqual({ recorded: 2, settled: 0 })
  const rows = await fixture.db.query.transfers.findMany()
  const recorded = rows.filter(({ owner, kind }) => owner === older.employer.address && kind === 'delegated')
  expect(recorded.map(({ hash }) => hash).toSorted()).toEqual(paid.toSorted())
  expect(recorded.map(({ status, payout }) => [status, payout])).toEqual(paid.map(() => ['succeeded', null]))
  // An explorer shows the hash of the fee bump: a search has to find the transfer by it.
  const found = await Promise.all(paid.map((hash = '') => searchRecords(fixture.db, hash)))
  expect(found.map(({ hits }) => hits.map(({ id }) => id))).toEqual(
    paid.map((hash) => recorded.filter((transfer) => transfer.hash === hash).map(({ id }) => id)),
  )
  expect((await runs.read(older)).payouts.map(({ status }) => status)).toEqual(['ready', 'ready'])
  expect(await runs.received(batch)).toEqual([4n, 8n])
})

test('does not start a run of an older batch while another channel may have paid it', async () => {
  const { runs, batch } = await restoreRun('before the run')
  await using _host = await fixture.relay()
  await expect.poll(findMoved).toMatchObject([{ address: runs.channel }])
  const other = fixture.channels[1]?.publicKey() ?? ''
  const seals = await Promise.all(
    batch.payouts.map(async ({ id, contractorId }) => {
      return { payoutId: id, encryptedAmount: await runs.seal(batch.id, contractorId, 4n, other) }
    }),
  )
  expect(await runs.ask(batch.employer, 'POST', `/batches/${batch.id}/seals`, { seals })).toMatchObject({ status: 200 })
  await runs.delegate(batch.employer, 8n, other)
  expect(await runs.run<unknown>(batch)).toMatchObject({
    status: 409,
    body: { errors: [{ channel: runs.channel, reason: 'channel-unavailable' }] },
  })
  expect(await releaseAll()).toEqual({ recorded: 2, settled: 0 })
  expect(await runs.run(batch)).toMatchObject({ status: 200, body: { status: 'completed', settledCount: 2 } })
  await expectRunPaidOnce(runs, batch, [4n, 8n])
})

test('releases a channel that has paid a payout which was canceled after the restore', async () => {
  const { runs, batch, next, paid } = await restoreRun('within the run')
  const [canceled] = batch.payouts
  if (!canceled) throw new Error('no payout')
  await using _host = await fixture.relay()
  await expect.poll(findMoved).not.toEqual([])
  expect(await runs.cancel(batch, canceled)).toMatchObject({ status: 200 })
  expect(await releaseAll()).toEqual({ recorded: 2, settled: 2 })
  const lines = (await runs.linesOf(batch)).map(({ state, hash }) => `${state} ${hash}`)
  expect(lines).toEqual(paid.map((hash) => `paid ${hash}`))
  const { payouts } = await runs.read(batch)
  expect(payouts.map(({ status, txHash }) => [status, txHash])).toEqual([
    ['canceled', paid[0]],
    ['paid', paid[1]],
  ])
  expect(payouts[0]?.error).toBe('paid although canceled: the ledger shows the payment')
  const noticed = (await readAttention(fixture.db, new Date())).items.filter((item) => item.batch?.id === batch.id)
  expect(noticed.map(({ what }) => what)).toEqual([
    expect.stringMatching(/ was paid, although the payout is canceled$/),
  ])
  // Another payout to the same payee that the payment would fit stays unpaid.
  expect(await runs.read(next)).toMatchObject({ payouts: [{ status: 'ready' }] })
})
