import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { insertRows, transferRow } from '#lib/cli/seed/rows.ts'
import { rollUp } from '#lib/dashboard/rollups.ts'
import { storedFamilies } from '#lib/dashboard/stored-metrics.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, openStore, type Store } from '#lib/db/connection.ts'
import { schema } from '#lib/db/schema.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')

let database: TestDatabase
let db: Database
let other: Store
let slow: Client
beforeAll(async () => {
  database = await startDatabase()
  db = await database.store.database()
  other = openStore({ url: database.url })
  slow = new Client({ connectionString: database.url })
  await slow.connect()
})
afterAll(async () => {
  await slow?.end()
  await other?.close()
  await database?.drop()
})
beforeEach(async () => {
  await db.execute('TRUNCATE transfers, settlement_counts, refusal_counts CASCADE')
  await slow.query('BEGIN')
})

/** Records and settles a transfer that took this many seconds. */
async function settle(seconds: number): Promise<void> {
  const createdAt = new Date(NOW.getTime() - 60_000)
  const settledAt = new Date(createdAt.getTime() + seconds * 1000)
  await insertRows(db, { transfers: [transferRow({ account: 'G', status: 'succeeded', createdAt, settledAt })] })
}

/** Settles a transfer in a transaction that does not commit yet. */
async function settleSlowly(): Promise<void> {
  const settledAt = new Date(NOW.getTime() + 3_000)
  const row = transferRow({ account: 'S', status: 'succeeded', createdAt: NOW, settledAt })
  await insertRows(drizzle(slow, { schema }), { transfers: [row] })
}

/** The number of succeeded transfers, and the sum of their settlement times, in the metrics. */
async function readMetrics(): Promise<[count: number | undefined, seconds: number | undefined]> {
  const families = await storedFamilies(db, NOW)
  const samplesOf = (name: string) => families.find((family) => family.name === name)?.samples ?? []
  const [total] = samplesOf('payroll_transfers_total')
  return [total?.value, samplesOf('payroll_settlement_seconds').find(({ suffix }) => suffix === '_sum')?.value]
}

const countRolledUp = async () => {
  const { rows } = await slow.query(
    `SELECT coalesce(sum(count), 0)::int AS count FROM settlement_counts WHERE hour = 'ever'`,
  )
  return rows[0].count
}

/** Rolls up until this many transfers are. */
const expectRolledUp = (count: number) =>
  expect
    .poll(async () => {
      await rollUp(db, NOW)
      return await countRolledUp()
    })
    .toBe(count)

test('counts a transfer whose number is lower than that of one that committed first', async () => {
  await rollUp(db, NOW)
  await settleSlowly()
  await settle(5)
  for (let round = 0; round < 3; round += 1) {
    await rollUp(db, NOW)
    expect(await readMetrics()).toEqual([1, 5])
  }
  expect(await countRolledUp()).toBe(0)
  await slow.query('COMMIT')
  expect(await readMetrics()).toEqual([2, 8])
  await expectRolledUp(2)
  expect(await readMetrics()).toEqual([2, 8])
})

test('skips the number of a transaction that was rolled back', async () => {
  await settleSlowly()
  await settle(5)
  await rollUp(db, NOW)
  await slow.query('ROLLBACK')
  await expectRolledUp(1)
  expect(await readMetrics()).toEqual([1, 5])
})

test('counts each transfer once, no matter how many processes roll up at the same time', async () => {
  await slow.query('COMMIT')
  const second = await other.database()
  for (let seconds = 1; seconds <= 20; seconds += 1) {
    await Promise.all([settle(seconds), rollUp(db, NOW), rollUp(second, NOW), rollUp(second, NOW)])
  }
  await expectRolledUp(20)
  expect(await readMetrics()).toEqual([20, 210])
})

test('adds up times exactly in any grouping, and counts none below zero', async () => {
  await slow.query('COMMIT')
  const sums = [
    [0.1, 0.1],
    [0.2, 0.3],
    [0.3, 0.6],
    [0.7, 1.3],
    [1.1, 2.4],
    [-5, 2.4],
  ] as const
  for (const [count, [seconds, sum]] of sums.entries()) {
    await settle(seconds)
    expect(await readMetrics()).toEqual([count + 1, sum])
    await expectRolledUp(count + 1)
    expect(await readMetrics()).toEqual([count + 1, sum])
  }
})

test('does not go back to a number that another process has counted in the meantime', async () => {
  await slow.query('COMMIT')
  await settle(5)
  await expectRolledUp(1)
  await slow.query('BEGIN')
  await slow.query(`SELECT FROM rollups WHERE name = 'settlements' FOR UPDATE`)
  // It has read the last number, and waits for the row.
  const late = rollUp(db, NOW)
  const second = await other.database()
  const waiting = sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await expect.poll(() => second.execute(waiting)).toMatchObject({ rowCount: 1 })
  await settle(6)
  await slow.query(`UPDATE rollups SET after = after + 1, bound = after + 1 WHERE name = 'settlements'`)
  await slow.query('COMMIT')
  const { rows: before } = await slow.query(`SELECT after FROM rollups WHERE name = 'settlements'`)
  await late
  expect((await slow.query(`SELECT after FROM rollups WHERE name = 'settlements'`)).rows).toEqual(before)
})

test('continues after a restore into a server whose transaction ids start again', async () => {
  await settle(5)
  await slow.query('ROLLBACK')
  await db.execute(`UPDATE rollups SET bound = after + 1, bound_xid = 1000000000000`)
  await expectRolledUp(1)
})

test('counts refusals beyond the audit entries that were dropped', async () => {
  await slow.query('COMMIT')
  const refuse = () =>
    recordAudit(db, NOW, {
      organisation: undefined,
      actor: { kind: 'ledger', sub: 'G' },
      action: 'transfer.refused',
      subject: 'hash',
      detail: { reason: 'float' },
    })
  const read = async () =>
    (await storedFamilies(db, NOW))
      .find(({ name }) => name === 'payroll_refusals_total')
      ?.samples.map(({ value }) => value)
  await refuse()
  const rolledUp = async () => {
    await rollUp(db, NOW)
    return (await slow.query('SELECT reason, count::int FROM refusal_counts')).rows
  }
  await expect.poll(rolledUp).toEqual([{ reason: 'float', count: 1 }])
  await slow.query('ALTER TABLE audit_log DISABLE TRIGGER audit_log_append_only')
  await slow.query('DELETE FROM audit_log')
  await refuse()
  expect(await read()).toEqual([2])
})

test('keeps the hours of the longest chart', async () => {
  await slow.query('COMMIT')
  await settle(5)
  await expectRolledUp(1)
  const hours = async () => (await slow.query('SELECT hour FROM settlement_counts ORDER BY hour')).rows
  expect(await hours()).toEqual([{ hour: '2026-11-20T12' }, { hour: 'ever' }])
  await rollUp(db, new Date('2027-01-01T00:00:00Z'))
  expect(await hours()).toEqual([{ hour: 'ever' }])
})
