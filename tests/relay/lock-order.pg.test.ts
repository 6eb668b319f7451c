import { Keypair } from '@stellar/stellar-sdk'
import { eq } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { quotas, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { openStore, type Store } from '#lib/db/connection.ts'
import { readTokenEvents } from '#lib/relay/channel-events.ts'
import { recordProblem } from '#lib/relay/channel-state.ts'
import { endLine } from '#lib/relay/chores.ts'
import { leaveLine } from '#lib/relay/lease.ts'
import { recordPayment } from '#lib/relay/past-payments.ts'
import { purposeOf } from '#lib/relay/payment-mark.ts'
import { resumeIfReconciled, resumePayments } from '#lib/relay/resume.ts'
import type { LineId } from '#lib/transfers/line.ts'
import { payment, relayOn } from './counting-ledger.ts'
import { FAILED, openLineFixture, RECIPIENT, TOKEN } from './line-fixture.ts'

const fixture = await openLineFixture()
const other = new Client({ connectionString: fixture.database.url })
await other.connect()
afterAll(fixture.close)
afterAll(() => other.end())
afterEach(() => other.query('ROLLBACK'))

const OPERATOR = { db: fixture.db, now: new Date(), actor: { kind: 'operator', sub: 'Ada' } as const, token: TOKEN }

/** Runs `work` while another client locks the row. Once `work` waits for it, runs `look` and returns its result. */
async function whileLocked<Found>(row: string, work: () => Promise<unknown>, look: () => Promise<Found>) {
  await other.query('BEGIN')
  await other.query(`${row} FOR UPDATE`)
  const working = work()
  await expect.poll(countBlocked).toBe(1)
  const found = await look()
  await other.query('ROLLBACK')
  await working
  return found
}

async function countBlocked(): Promise<number> {
  const { rows } = await other.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  return rows.length
}

const lineRow = ({ job, position }: LineId) =>
  `SELECT 1 FROM relay_lines WHERE job = '${job}' AND position = ${position}`
const jobRow = ({ job }: LineId) => `SELECT 1 FROM relay_jobs WHERE id = '${job}'`
const transferRow = ({ id }: { id: string }) => `SELECT 1 FROM transfers WHERE id = '${id}'`
const PAYMENTS = `SELECT 1 FROM payment_stops WHERE token = '${TOKEN}'`
const channelRow = (address: string) => `SELECT 1 FROM relay_channels WHERE address = '${address}'`

/** Which of these rows no transaction has locked. */
const areFree =
  (...rows: string[]) =>
  async () => {
    const free: boolean[] = []
    for (const row of rows) free.push((await other.query(`${row} FOR UPDATE SKIP LOCKED`)).rowCount === 1)
    return free
  }

/** A line whose transfer is open, and the next one, which its channel leases. */
async function recordOne() {
  const { makeChannels, makeJob, take, record } = fixture
  await makeChannels('A')
  await makeJob(2)
  const line = await take('A')
  const transfer = await record(line)
  const [next] = (await fixture.db.query.relayLines.findMany({ where: (row, { isNull }) => isNull(row.sentAt) })).map(
    (row) => ({ ...row, channel: 'A' }),
  )
  if (!next) throw new Error('a line is missing')
  return { line, transfer, next }
}

describe('locks are taken in one order', () => {
  test.each(['succeeded', 'failed', 'unknown'] as const)(
    'a transfer that is %s locks itself, its line, its job and its channel',
    async (status) => {
      const { line, transfer } = await recordOne()
      const settle = () => fixture.settle(transfer, status)
      const [job, channel] = [jobRow(line), channelRow('A')]
      expect(await whileLocked(lineRow(line), settle, areFree(transferRow(transfer), job, channel))).toEqual([
        false,
        true,
        true,
      ])
      expect((await fixture.lineOf(line)).outcome).toBe({ succeeded: 'paid', failed: null, unknown: 'unknown' }[status])
    },
  )

  test('a paid line locks its job before its channel', async () => {
    const { line, transfer } = await recordOne()
    const settle = () => fixture.settle(transfer, 'succeeded')
    const free = areFree(transferRow(transfer), lineRow(line), channelRow('A'))
    expect(await whileLocked(jobRow(line), settle, free)).toEqual([false, false, true])
  })

  test('the last line of a run locks its channel before the quotas', async () => {
    const { makeChannels, makeRun, lease, record, settle, lineOf } = fixture
    await makeChannels('A')
    const [only] = await makeRun('fred', ['A'])
    const line = await lease('A')
    if (!only || !line) throw new Error('a line is missing')
    const transfer = await record(line)
    const quotaRow = `SELECT 1 FROM quotas WHERE account = '*'`
    const end = () => settle(transfer, 'succeeded')
    expect(await whileLocked(channelRow('A'), end, areFree(quotaRow, jobRow(only)))).toEqual([true, false])
    expect((await lineOf(only)).outcome).toBe('paid')
  })

  test('a line that ends without a transfer locks itself and its job', async () => {
    const { next } = await recordOne()
    const end = () => endLine(fixture.relayWith(), next, FAILED)
    expect(await whileLocked(lineRow(next), end, areFree(jobRow(next)))).toEqual([true])
    const { next: another } = await recordOne()
    const endAnother = () => endLine(fixture.relayWith(), another, FAILED)
    expect(await whileLocked(jobRow(another), endAnother, areFree(lineRow(another)))).toEqual([false])
  })

  test('a transfer that is recorded locks payments and its line before the open transfer of its channel', async () => {
    const { transfer, next } = await recordOne()
    const record = () => fixture.record(next).catch((error: unknown) => error)
    const rest = [transferRow(transfer), jobRow(next), channelRow('A')]
    expect(await whileLocked(PAYMENTS, record, areFree(lineRow(next), ...rest))).toEqual([true, true, true, true])
    expect(await whileLocked(lineRow(next), record, areFree(PAYMENTS, ...rest))).toEqual([false, true, true, true])
    const all = areFree(PAYMENTS, lineRow(next), ...rest.slice(1))
    expect(await whileLocked(transferRow(transfer), record, all)).toEqual([false, false, true, true])
  })

  test('a payment that is found on the ledger locks payments before its line', async () => {
    const signer = Keypair.random()
    await fixture.makeChannels(signer.publicKey())
    await fixture.stop()
    const line = await fixture.makeLine()
    const purpose = purposeOf(await fixture.lineOf(line))
    const payments = [payment({ channel: signer, to: RECIPIENT, purpose, ledger: 80 })]
    const relay = relayOn(fixture, { payments }, [signer])
    const [event] = (await readTokenEvents(relay, signer.publicKey(), undefined)).transfers
    if (!event) throw new Error('the ledger shows no payment')
    const find = () => recordPayment(relay, event)
    expect(await whileLocked(PAYMENTS, find, areFree(lineRow(line)))).toEqual([true])
    await fixture.db.delete(transfers)
    await fixture.setLine(line, { outcome: null, hash: null, settledAt: null, sealedAmount: 'sealed' })
    expect(await whileLocked(lineRow(line), find, areFree(PAYMENTS))).toEqual([false])
    expect((await fixture.lineOf(line)).outcome).toBe('paid')
  })

  test('a stop waits for a payment that is being recorded, and a payment for a stop', async () => {
    const { transfer, next } = await recordOne()
    await fixture.settle(transfer, 'expired')
    let recorded: Promise<unknown> | undefined
    let stopped: Promise<void> | undefined
    const isStopped = async () => (await fixture.stopOf()) !== undefined
    const record = () => {
      recorded = fixture.record(next)
      return recorded
    }
    await whileLocked(lineRow(next), record, async () => {
      stopped = fixture.stop('A')
      await new Promise((resolve) => setTimeout(resolve, 500))
      expect(await isStopped()).toBe(false)
    })
    await stopped
    expect([await isStopped(), await recorded]).toMatchObject([true, { status: 'open' }])
  })

  test('payments that go on lock their row, the lines of runs, the batches of payouts, the runs, and the channels', async () => {
    const { makeChannels, makeRun, stop, setChannel } = fixture
    await makeChannels('A')
    const resume = async () => {
      await stop('A')
      await setChannel('A', { reconcileProblem: 'history-gap' })
      expect(await resumePayments(OPERATOR, { note: 'lost' })).toBe('resumed')
    }
    const looks: boolean[][] = []
    for (const locked of [1, 2, 3]) {
      const [line] = await makeRun('dora', ['A'])
      if (!line) throw new Error('a line is missing')
      const batch = `SELECT 1 FROM batches WHERE id = (SELECT batch FROM relay_jobs WHERE id = '${line.job}')`
      const rows = [PAYMENTS, lineRow(line), batch, jobRow(line), channelRow('A')]
      looks.push(await whileLocked(rows[locked] ?? '', resume, areFree(...rows.toSpliced(locked, 1))))
    }
    expect(looks).toEqual([
      [false, true, true, true],
      [false, false, true, true],
      [false, false, false, true],
    ])
  })
})

test('a run whose last line ends while payments go on returns its quota once', async () => {
  const { db, makeChannels, makeRun, relayWith, stop, setChannel, jobOf } = fixture
  await makeChannels('A')
  const [line] = await makeRun('emil', ['A'])
  if (!line) throw new Error('a line is missing')
  await stop('A')
  await setChannel('A', { reconcileProblem: 'history-gap' })
  let resumed: Promise<unknown> | undefined
  const end = () => endLine(relayWith(), line, { outcome: 'canceled' })
  await whileLocked(jobRow(line), end, async () => {
    resumed = resumePayments(OPERATOR, { note: 'lost' })
    await expect.poll(countBlocked).toBe(2)
  })
  expect(await resumed).toBe('resumed')
  expect(await jobOf(line.job)).toMatchObject({ status: 'completed', code: null })
  expect((await db.select().from(quotas).where(eq(quotas.account, 'emil'))).map(({ count }) => count)).toEqual([0])
})

test('no two transactions wait for each other while lines are leased, recorded, settled and ended and payments stopped at once', async () => {
  const channels = ['A', 'B', 'C']
  await fixture.makeChannels(...channels)
  const ofRun = [...channels, ...channels, ...channels]
  const runs = ['ann', 'bob', 'cy'].map((employer) => fixture.makeRun(employer, ofRun))
  const lines = (await Promise.all([fixture.makeJob(20), fixture.makeJob(20), ...runs])).flat()
  const before = await countDeadlocks()
  const second: Store = openStore({ url: fixture.database.url })
  const relay = { ...fixture.relayWith(...channels), database: second.database }
  const outcomes: Exclude<TransferStatus, 'open'>[] = ['succeeded', 'failed', 'expired', 'unknown']
  const isOpen = async () => (await fixture.db.query.relayLines.findMany()).some(({ outcome }) => outcome === null)
  let recorded = 0
  /** Pays lines of a channel as one of two hosts with its seed; the other one has the same line. */
  const pay = async (channel: string, host: number) => {
    for (let time = host; await isOpen(); time += 1) {
      const line = await fixture.lease(channel)
      if (!line) continue
      const transfers = await Promise.allSettled([fixture.record(line), fixture.record(line)])
      if (transfers.some(({ status }) => status === 'fulfilled')) recorded += 1
      for (const result of transfers) {
        if (result.status === 'rejected') continue
        const status = outcomes[time % outcomes.length] ?? 'succeeded'
        await Promise.all([fixture.settle(result.value, status), fixture.settle(result.value, status)])
      }
      await leaveLine(relay, line, { because: 'left' })
    }
  }
  const end = async () => {
    for (const [index, line] of lines.entries()) if (index % 4 === 0) await endLine(relay, line, FAILED)
  }
  const disturb = async () => {
    for (let time = 0; await isOpen(); time += 1) {
      await recordProblem(relay, channels[time % 3] ?? '', time % 2 === 0 ? 'history' : null)
      if (time % 5 === 0) for (const channel of channels) await recordProblem(relay, channel, null)
    }
  }
  /** Stops payments again and again, and lets them go on: by themselves, and at last without whole history, which ends all runs. */
  const stopAndGoOn = async () => {
    for (let time = 0; recorded < 60 && (await isOpen()); time += 1) {
      await fixture.stop(channels[time % 3])
      const stop = await fixture.stopOf()
      for (const channel of channels) await fixture.setChannel(channel, { reconciledStop: stop?.since ?? null })
      expect(await resumeIfReconciled(relay)).toBe(true)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await fixture.stop()
    await fixture.setChannel('B', { reconcileProblem: 'history-gap' })
    for (const channel of ['A', 'C']) await fixture.setChannel(channel, { reconcileProblem: 'failed' })
    const context = { ...OPERATOR, db: await second.database() }
    // A word waits for what was recorded before the stop.
    await expect.poll(() => resumePayments(context, { note: 'lost' })).toBe('resumed')
  }
  try {
    await Promise.all([
      ...channels.flatMap((channel) => [pay(channel, 0), pay(channel, 1)]),
      end(),
      disturb(),
      stopAndGoOn(),
    ])
  } finally {
    await second.close()
  }
  expect(recorded).toBeGreaterThan(30)
  expect(await fixture.stopOf()).toBeUndefined()
  // The server counts a deadlock up to a second later.
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(await countDeadlocks()).toBe(before)
  for (const job of new Set(lines.map((line) => line.job))) expect((await fixture.jobOf(job))?.status).toBe('failed')
})

async function countDeadlocks(): Promise<number> {
  const { rows } = await other.query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()')
  return rows[0].deadlocks
}
