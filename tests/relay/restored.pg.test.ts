import { eq, ne, sql } from 'drizzle-orm'
import { afterAll, afterEach, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { envelopes, type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { sendAndWait } from '#lib/cli/client/participants.ts'
import { changeChannel } from '#lib/relay/channel-state.ts'
import { resumePayments } from '#lib/relay/resume.ts'
import { runChore } from '#lib/server/maintenance.ts'
import { startRelay } from '#lib/server/relay.ts'
import type { RunningService } from '#lib/server/start.ts'
import { setOf } from '#lib/transfers/rows.ts'
import { settle } from '#lib/transfers/settle.ts'
import { buildDeposit, buildMerge } from '#lib/wallet/calls.ts'
import { disposable } from '../support/disposable.ts'
import { signElsewhere } from '../support/elsewhere.ts'
import { expectJobPaidOnce } from '../support/paid-once.ts'
import { withhold } from '../support/transfers.ts'
import { openBackups, type Restore } from './backup.ts'
import { startMortalRelay } from './mortal-relay.ts'
import { watchProver } from './provers.ts'
import { serveJobs } from './relay-service.ts'
import { openRunFixture } from './run-fixture.ts'
import { SHORT_TIMES } from './short-times.ts'

const fixture = await serveJobs({ channels: 2 })
const { backUp, close } = await openBackups(fixture)
const { addressOf, linesOf, operator, pass } = fixture
afterAll(close)
afterEach(() => fixture.db.update(relayChannels).set({ paused: false, retired: false }))

const readChannel = (address: string) =>
  fixture.db.query.relayChannels.findFirst({ where: (channel, { eq }) => eq(channel.address, address) })
const statesOf = async (job: string) => (await linesOf(job)).map(({ state }) => state)
const transfersOf = (job: string) =>
  fixture.db.query.transfers.findMany({ where: (row, { eq }) => eq(row.lineJob, job), orderBy: (row) => row.sequence })
/** The hashes of the transactions that have paid a job's lines: of the channel’s, and of its fee bump. */
const paymentsOf = async (job: string) =>
  (await transfersOf(job)).flatMap(({ status, applied, hash }) => (status === 'succeeded' ? `${applied} ${hash}` : []))
/** Payments do not go on by themselves while such a host runs. */
const STOPPED = { ...SHORT_TIMES, drain: 600 }
/** Has only this channel pay until the end of the test. */
const pauseOthers = (address: string) =>
  fixture.db.update(relayChannels).set({ paused: true }).where(ne(relayChannels.address, address))
const findStop = async () => {
  await expect.poll(fixture.stop).toBeDefined()
  return await fixture.stop()
}

/** Has no relay pay the first line of a job, for an hour. */
const delayFirst = (job: string) =>
  fixture.db.execute(sql`UPDATE relay_lines SET due = now() + interval '1 hour' WHERE job = ${job} AND position = 0`)

/** Uses up a sequence number of a channel, without a relay. Resolves to its address. */
async function moveChannel(index: number): Promise<string> {
  const address = addressOf(index)
  await signElsewhere(fixture.ledger.network, fixture.channel(address))
  return address
}

/** A relay with the seeds of some channels only. */
const withSeedOf = <Result>(index: number, work: (other: RunningService) => Promise<Result>) =>
  fixture.withVariables({ CHANNEL_SEEDS: fixture.channels[index]?.secret() ?? '' }, work)

/** A job that a relay pays after a backup, which is restored then. */
async function restoreUnpaid(amounts: readonly number[], prepare: () => Promise<unknown> = async () => undefined) {
  const { client, payee, job } = await fixture.start(...amounts)
  const restore = await backUp()
  await prepare()
  const total = BigInt(amounts.reduce((sum, amount) => sum + amount, 0))
  const expectPaid = () => expectJobPaidOnce(fixture, client, job, [payee, total])
  {
    await using _host = await fixture.relay()
    await expectPaid()
  }
  const [paid, lines] = [await paymentsOf(job), await linesOf(job)]
  const resumed = await restore()
  /** Waits until the payments were found, and nothing was paid again. */
  const expectFound = async () => {
    expect(await resumed()).toEqual({ found: amounts.length })
    await expectPaid()
    expect(new Set(await paymentsOf(job))).toEqual(new Set(paid))
  }
  return { client, payee, job, lines, restore, expectFound, expectPaid }
}

test('settles the lines that were paid after the backup, and pays none of them again', async () => {
  const { client: earlier, payee: other } = await fixture.engaged()
  {
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, earlier, await fixture.begin(earlier, 1, 2), [other, 3n])
  }
  const { client, payee, job, expectFound } = await restoreUnpaid([4, 8])
  expect(await statesOf(job)).toEqual(['waiting', 'waiting'])
  await using _host = await fixture.relay()
  await expectFound()
  await expectJobPaidOnce(fixture, client, await fixture.begin(client, 16), [payee, 28n])
})

test('settles a line that a host was proving at the backup, and paid later', async () => {
  const { client, payee, job } = await fixture.start(64)
  const { prover, begun, release } = watchProver({ from: 1 })
  let restore: Restore
  {
    await using _host = await fixture.relay({ prover })
    await begun
    restore = await backUp()
    release()
    await expectJobPaidOnce(fixture, client, job, [payee, 64n])
  }
  const paid = await paymentsOf(job)
  const resumed = await restore()
  expect(await linesOf(job)).toMatchObject([{ outcome: null, leasedUntil: expect.any(Date) }])
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 1 })
  await expectJobPaidOnce(fixture, client, job, [payee, 64n])
  expect(await paymentsOf(job)).toEqual(paid)
})

test('records the fees of the payments that it finds, even if the sponsor pays for none now', async () => {
  const costsOf = async (job: string) =>
    (await transfersOf(job))
      .map(({ hash, sponsor, feeCharged, quotaAccount }) => ({ hash, sponsor, feeCharged, quotaAccount }))
      .toSorted((one, next) => (`${one.hash}` < `${next.hash}` ? -1 : 1))
  const { client, payee, job } = await fixture.start(5, 6)
  const restore = await backUp()
  {
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, client, job, [payee, 11n])
  }
  const costs = await costsOf(job)
  expect(costs.map(({ feeCharged }) => Number(feeCharged) > 0)).toEqual([true, true])
  const resumed = await restore()
  const strict = {
    SPONSOR_CONTRACTS: 'none',
    SPONSOR_MAX_FEE: '1',
    SPONSOR_QUOTA_TRANSFERS: '0',
    SPONSOR_QUOTA_STROOPS: '1',
    SPONSOR_DAILY_BUDGET: '1',
  }
  await fixture.withVariables(strict, async (other) => {
    await using _host = disposable(await startRelay(other, { times: SHORT_TIMES }))
    expect(await resumed()).toEqual({ found: 2 })
  })
  expect(await costsOf(job)).toEqual(costs)
  await expectJobPaidOnce(fixture, client, job, [payee, 11n])
})

test('settles the line that a lost payment was made for, not an older one of the same payee, and then pays that', async () => {
  const { client, payee, job } = await fixture.start(32, 64)
  const restore = await backUp()
  await delayFirst(job)
  {
    await using _host = await fixture.relay()
    await expect.poll(() => statesOf(job)).toEqual(['waiting', 'paid'])
  }
  const resumed = await restore()
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 1 })
  await expectJobPaidOnce(fixture, client, job, [payee, 96n])
})

test('signs nothing while payments are stopped, even after restarts, and goes on if a channel has paid nothing', async () => {
  const resumed = await fixture.beforeStop()
  const address = await moveChannel(0)
  const readSequences = () =>
    Promise.all(
      fixture.channels.map(async (channel) =>
        (await fixture.ledger.network.rpc.getAccount(channel.publicKey())).sequenceNumber(),
      ),
    )
  const before = await readSequences()
  const { client, payee, job } = await fixture.start(3)
  for (const _ of [1, 2]) {
    await using _host = await fixture.relay({ times: STOPPED })
    await findStop()
    await pass(10)
    expect(await statesOf(job)).toEqual(['waiting'])
  }
  expect(await readSequences()).toEqual(before)
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 0 })
  expect((await readChannel(address))?.adoptedSequence).toBe(BigInt(before[0] ?? 0))
  await expectJobPaidOnce(fixture, client, job, [payee, 3n])
  const stopped = await fixture.db.query.auditLog.findMany({
    where: (row, { eq }) => eq(row.action, 'payments.stopped'),
    orderBy: (row) => row.sequence,
  })
  expect(stopped.at(-1)).toMatchObject({ actorKind: 'service', actorSub: 'relay', detail: { channel: address } })
})

/** The open transfers of a job, once there are this many. */
async function openTransfersOf(job: string, count: number) {
  const find = async () => (await transfersOf(job)).filter(({ status }) => status === 'open')
  await expect.poll(find).toHaveLength(count)
  return await find()
}

test('stops for a merge that a channel has made without this database, and goes on by itself', async () => {
  const { client, payee } = await fixture.engaged()
  const [address, { network, issuer }] = [addressOf(0), fixture.ledger]
  await pauseOthers(address)
  const resumed = await fixture.beforeStop()
  await sendAndWait(network, (await buildDeposit(network, issuer, { to: address, amount: 1n })).signedXdr)
  await sendAndWait(network, (await buildMerge(network, fixture.channel(address))).signedXdr)
  const job = await fixture.begin(client, 32)
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 0 })
  expect(await transfersOf(job)).toEqual([])
  await expectJobPaidOnce(fixture, client, job, [payee, 32n])
})

test.each([
  ['', false],
  [' and it is paused, while another channel is free', true],
])('pays a line once whose transfer expired because an unknown transaction used its number%s', async (_, isPaused) => {
  const { client, payee } = await fixture.engaged()
  const resumed = await fixture.beforeStop()
  await using _host = await fixture.relay()
  fixture.ledger.proxy.rule(withhold)
  const job = await fixture.begin(client, 128)
  const [transfer] = await openTransfersOf(job, 1)
  if (!transfer) throw new Error('no transfer is open')
  const { account: address, sequenceNumber } = transfer
  await fixture.db.update(relayChannels).set({ paused: isPaused }).where(eq(relayChannels.address, address))
  await signElsewhere(fixture.ledger.network, fixture.channel(address), { number: sequenceNumber })
  fixture.ledger.proxy.rule(null)
  expect(await resumed()).toEqual({ found: 0 })
  await expectJobPaidOnce(fixture, client, job, [payee, 128n])
})

test('settles the transfers that were open at the backup, and finds a later one that is lost', async () => {
  const { client, payee } = await fixture.engaged()
  // Each of the two channels has a transfer open at the backup. One of them pays the third line later.
  const job = await fixture.begin(client, 1, 2, 4)
  let restore: Restore
  {
    await using _host = await fixture.relay()
    fixture.ledger.proxy.rule(withhold)
    await openTransfersOf(job, 2)
    restore = await backUp()
    fixture.ledger.proxy.rule(null)
    await expectJobPaidOnce(fixture, client, job, [payee, 7n])
  }
  const paid = await paymentsOf(job)
  const resumed = await restore()
  expect((await statesOf(job)).filter((state) => state === 'sent')).toHaveLength(2)
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 1 })
  await expectJobPaidOnce(fixture, client, job, [payee, 7n])
  expect(new Set(await paymentsOf(job))).toEqual(new Set(paid))
})

test('does not pay a line again whose transfer is unknown in the backup, and was applied', async () => {
  const { client, payee } = await fixture.engaged()
  await pauseOthers(addressOf(0))
  const job = await fixture.begin(client, 1, 2)
  {
    await using _host = await fixture.relay()
    fixture.ledger.proxy.rule(withhold)
    await openTransfersOf(job, 1)
  }
  const [open] = await openTransfersOf(job, 1)
  const sent = await fixture.db.query.envelopes.findMany({ where: (row, { eq }) => eq(row.transfer, open?.id ?? '') })
  const decision = { status: 'unknown' } as const
  await settle(fixture.db, open?.id ?? '', { decision, lookedUp: setOf(sent), now: new Date() })
  const restore = await backUp()
  fixture.ledger.proxy.rule(null)
  await sendAndWait(fixture.ledger.network, sent[0]?.signed ?? '')
  {
    await using _host = await fixture.relay()
    await expect.poll(() => statesOf(job)).toEqual(['unknown', 'paid'])
  }
  const resumed = await restore()
  expect(await statesOf(job)).toEqual(['unknown', 'waiting'])
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 1 })
  expect(await statesOf(job)).toEqual(['unknown', 'paid'])
  expect(await fixture.received(payee)).toBe(3n)
})

test.each(['the same channel', 'another channel'])(
  'does not pay a line again whose transfer in the backup expired before %s paid it',
  async (paying) => {
    const { client, payee, job } = await fixture.start(8)
    let restore: Restore
    let expired: Transfer | undefined
    {
      await using _host = await fixture.relay()
      fixture.ledger.proxy.rule(withhold)
      expired = (await openTransfersOf(job, 1))[0]
      restore = await backUp()
    }
    const { id = '', account = '' } = expired ?? {}
    // As if it had expired: the next transfer of its channel has the same number.
    await fixture.db.delete(transfers).where(eq(transfers.id, id))
    if (paying === 'the same channel') await pauseOthers(account)
    else await fixture.db.update(relayChannels).set({ paused: true }).where(eq(relayChannels.address, account))
    fixture.ledger.proxy.rule(null)
    {
      await using _host = await fixture.relay()
      await expect.poll(() => statesOf(job)).toEqual(['paid'])
    }
    const paid = await paymentsOf(job)
    await restore()
    expect(await statesOf(job)).toEqual(['sent'])
    await fixture.db.update(envelopes).set({ maxTime: 1 }).where(eq(envelopes.transfer, id))
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, client, job, [payee, 8n])
    await expect.poll(fixture.stop).toBeUndefined()
    expect(await paymentsOf(job)).toEqual(paid)
  },
)

test('settles the line that a lost transfer has paid with the number of one of another line in the backup', async () => {
  const { client, payee } = await fixture.engaged()
  await pauseOthers(addressOf(0))
  let restore: Restore
  let job: string
  {
    await using _host = await fixture.relay()
    fixture.ledger.proxy.rule(withhold)
    job = await fixture.begin(client, 16, 32)
    await openTransfersOf(job, 1)
    restore = await backUp()
  }
  // As if it had expired, and the other line had been paid next.
  await fixture.db.delete(transfers).where(eq(transfers.lineJob, job))
  await delayFirst(job)
  fixture.ledger.proxy.rule(null)
  {
    await using _host = await fixture.relay()
    await expect.poll(() => statesOf(job)).toEqual(['waiting', 'paid'])
  }
  const paid = await paymentsOf(job)
  const resumed = await restore()
  expect(await statesOf(job)).toEqual(['sent', 'waiting'])
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 1 })
  await expectJobPaidOnce(fixture, client, job, [payee, 48n])
  expect(await paymentsOf(job)).toEqual(expect.arrayContaining(paid))
})

test('finds the payments again after a second restore while payments are stopped', async () => {
  const { restore, expectPaid } = await restoreUnpaid([1, 2])
  {
    await using _host = await fixture.relay({ times: STOPPED })
    await expect.poll(fixture.stop).toMatchObject({ found: 2 })
  }
  const resumed = await restore()
  expect(await fixture.stop()).toBeUndefined()
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  await expectPaid()
})

test('stops payments anew if a backup from within a stop is restored, and a channel has paid since it was reconciled for that', async () => {
  const { client, payee } = await fixture.engaged()
  const address = await moveChannel(1)
  await runChore(fixture.running, 'channels')
  const stop = await findStop()
  // The other channel is reconciled already.
  const { account } = await fixture.running.tracker.readAccount(addressOf(0))
  await fixture.db
    .update(relayChannels)
    .set({ reconciledStop: stop?.since ?? null, adoptedSequence: account?.seqNum ?? null })
    .where(eq(relayChannels.address, addressOf(0)))
  const job = await fixture.begin(client, 8, 16)
  const restore = await backUp()
  await pauseOthers(addressOf(0))
  {
    await using _host = await fixture.relay()
    await expectJobPaidOnce(fixture, client, job, [payee, 24n])
  }
  const resumed = await restore()
  expect((await readChannel(address))?.reconciledStop).not.toEqual(stop?.since)
  expect(await fixture.stop()).toEqual(stop)
  await runChore(fixture.running, 'channels')
  expect(Number((await fixture.stop())?.since)).toBeGreaterThan(Number(stop?.since))
  await using _host = await fixture.relay()
  expect(await resumed()).toEqual({ found: 2 })
  await expectJobPaidOnce(fixture, client, job, [payee, 24n])
})

test('goes on where a host was killed that had found some of the payments', async () => {
  const { lines, expectFound } = await restoreUnpaid([1, 2, 4])
  const paid = lines.map(({ hash }) => hash)
  let first: unknown
  fixture.ledger.proxy.rule(({ method, params: { hash } }) => {
    if (method !== 'getTransaction' || !paid.some((one) => one === hash)) return 'pass'
    first ??= hash
    return hash === first ? 'pass' : { hang: true, delivered: false }
  })
  const killed = await startMortalRelay(fixture.variables)
  await expect.poll(fixture.stop).toMatchObject({ found: 1 })
  await killed.kill()
  fixture.ledger.proxy.rule(null)
  await using _host = await fixture.relay()
  await expectFound()
})

test('finds the payments of a channel whose relay is off, by the key that it has stored', async () => {
  const { client, payee, expectFound } = await restoreUnpaid([1, 2], () => pauseOthers(addressOf(1)))
  await withSeedOf(0, async (other) => {
    await using _host = disposable(await startRelay(other, { times: SHORT_TIMES }))
    await expectFound()
    await expectJobPaidOnce(fixture, client, await fixture.begin(client, 4), [payee, 7n])
  })
})

test('waits for a channel whose key no relay has, until an operator retires it', async () => {
  const { client, payee } = await fixture.engaged()
  const resumed = await fixture.beforeStop()
  const address = await moveChannel(1)
  await fixture.db.update(relayChannels).set({ sealedMarkKey: null }).where(eq(relayChannels.address, address))
  const job = await fixture.begin(client, 64)
  await withSeedOf(0, async (other) => {
    await using _host = disposable(await startRelay(other, { times: SHORT_TIMES }))
    const stop = await findStop()
    await expect.poll(() => readChannel(addressOf(0))).toMatchObject({ reconciledStop: stop?.since })
    await pass(20)
    expect(await fixture.stop()).toEqual(stop)
    expect(await resumePayments(operator(), { note: 'too early' })).toEqual({ waitsFor: address })
    const retirement = { token: operator().token, address, note: 'its seed is lost', change: 'retired' as const }
    const retire = () => changeChannel(operator(), retirement)
    expect([await retire(), await retire()]).toEqual([true, false])
    expect(await resumed()).toEqual({ found: 0 })
    await expectJobPaidOnce(fixture, client, job, [payee, 64n])
  })
  expect(await linesOf(job)).toMatchObject([{ channel: addressOf(0) }])
  expect(await resumePayments(operator(), { note: 'twice' })).toBe('not-stopped')
})

/** As an RPC that keeps no ledgers from before now. */
async function forgetHistory(before: () => Promise<unknown> = async () => undefined): Promise<void> {
  const { sequence } = await fixture.ledger.network.rpc.getLatestLedger()
  await before()
  fixture.ledger.proxy.rule(({ method }) =>
    method === 'getHealth' ? { rewrite: (health) => ({ ...health, oldestLedger: sequence }) } : 'pass',
  )
}

test('finds the payments in the archive if the RPC no longer has the events of the channel', async () => {
  const { expectFound } = await restoreUnpaid([8, 16])
  // The archive includes a few ledgers that the RPC still has.
  await forgetHistory(openRunFixture(fixture).untilArchived)
  await using _host = await fixture.relay()
  await expectFound()
})

test('waits for an operator if neither the RPC nor an archive has the events of a channel', async () => {
  const { client, payee } = await fixture.engaged()
  const address = await moveChannel(0)
  const resumed = await fixture.beforeStop()
  await fixture.db.execute('TRUNCATE archive_streams, archive_ranges, archive_events CASCADE')
  await forgetHistory()
  const job = await fixture.begin(client, 2)
  await using _host = await fixture.relay()
  const stop = await findStop()
  await expect.poll(() => readChannel(address)).toMatchObject({ reconcileProblem: 'history-gap' })
  await pass(20)
  expect(await fixture.stop()).toEqual(stop)
  expect(await resumePayments(operator(), { note: 'checked the payees' })).toBe('resumed')
  expect(await resumed()).toMatchObject({ note: 'checked the payees', found: 0 })
  await expectJobPaidOnce(fixture, client, job, [payee, 2n])
  expect((await readChannel(address))?.reconcileProblem).toBeNull()
})

test('leases no line before the RPC shows every transaction applied before its start', async () => {
  const { client, payee, job } = await fixture.start(256)
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
