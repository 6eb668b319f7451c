import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import { openStore, type Store } from '#lib/db/connection.ts'
import { recordProblem } from '#lib/relay/channel-state.ts'
import { endLine } from '#lib/relay/ending.ts'
import { leaveLine } from '#lib/relay/lease.ts'
import type { LineId } from '#lib/transfers/line.ts'
import { type LineFixture, openLineFixture } from './line-fixture.ts'

const FAILED = { outcome: 'failed', error: 'why' } as const

let fixture: LineFixture
let other: Client
beforeAll(async () => {
  fixture = await openLineFixture()
  other = new Client({ connectionString: fixture.database.url })
  await other.connect()
})
afterAll(async () => {
  await other?.end()
  await fixture?.close()
})
afterEach(() => other?.query('ROLLBACK'))

/** Runs `work` while another client locks the row. Once `work` waits for it, runs `look` and returns its result. */
async function whileLocked<Found>(row: string, work: () => Promise<unknown>, look: () => Promise<Found>) {
  await other.query('BEGIN')
  await other.query(`${row} FOR UPDATE`)
  const working = work()
  await expect.poll(isAnyBlocked).toBe(true)
  const found = await look()
  await other.query('ROLLBACK')
  await working
  return found
}

async function isAnyBlocked(): Promise<boolean> {
  const { rows } = await other.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  return rows.length > 0
}

const lineRow = ({ job, position }: LineId) =>
  `SELECT 1 FROM relay_lines WHERE job = '${job}' AND position = ${position}`
const jobRow = ({ job }: LineId) => `SELECT 1 FROM relay_jobs WHERE id = '${job}'`
const transferRow = ({ id }: { id: string }) => `SELECT 1 FROM transfers WHERE id = '${id}'`
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

  test('a line that ends without a transfer locks itself and its job', async () => {
    const { next } = await recordOne()
    const end = () => endLine(fixture.relayWith(), next, FAILED)
    expect(await whileLocked(lineRow(next), end, areFree(jobRow(next)))).toEqual([true])
    const { next: another } = await recordOne()
    const endAnother = () => endLine(fixture.relayWith(), another, FAILED)
    expect(await whileLocked(jobRow(another), endAnother, areFree(lineRow(another)))).toEqual([false])
  })

  test('a transfer that is recorded locks its line before the open transfer of its channel', async () => {
    const { transfer, next } = await recordOne()
    const record = () => fixture.record(next).catch((error: unknown) => error)
    const rest = [transferRow(transfer), jobRow(next), channelRow('A')]
    expect(await whileLocked(lineRow(next), record, areFree(...rest))).toEqual([true, true, true])
    expect(await whileLocked(transferRow(transfer), record, areFree(lineRow(next), ...rest.slice(1)))).toEqual([
      false,
      true,
      true,
    ])
  })
})

test('no two transactions wait for each other while lines are leased, recorded, settled and ended at once', async () => {
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
      recorded += 1
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
  try {
    await Promise.all([...channels.flatMap((channel) => [pay(channel, 0), pay(channel, 1)]), end(), disturb()])
  } finally {
    await second.close()
  }
  expect(recorded).toBeGreaterThan(30)
  // The server counts a deadlock up to a second later.
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(await countDeadlocks()).toBe(before)
  for (const job of new Set(lines.map((line) => line.job))) expect((await fixture.jobOf(job))?.status).toBe('failed')
})

async function countDeadlocks(): Promise<number> {
  const { rows } = await other.query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()')
  return rows[0].deadlocks
}
