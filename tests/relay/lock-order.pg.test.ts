import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { reserve } from '#lib/relay/channel.ts'
import { end, requeue } from '#lib/relay/item.ts'
import { findItem, type Item, type ItemId } from '#lib/relay/item-row.ts'
import { type ItemFixture, openItemFixture } from './item-fixture.ts'

let fixture: ItemFixture
let other: Client
beforeAll(async () => {
  fixture = await openItemFixture()
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
  await expect.poll(isAnybodyBlocked).toBe(true)
  const found = await look()
  await other.query('ROLLBACK')
  await working
  return found
}

async function isAnybodyBlocked(): Promise<boolean> {
  const { rows } = await other.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  return rows.length > 0
}

const rowOf = ({ job, position }: ItemId) => `SELECT 1 FROM batch_items WHERE job = '${job}' AND position = ${position}`
const channelRow = (address: string) => `SELECT 1 FROM relay_channels WHERE address = '${address}'`

const isFree = (row: string) => async () => {
  const rows = await other.query(`${row} FOR UPDATE SKIP LOCKED`)
  return rows.rowCount === 1
}

/** A signed item on `channel`, and the item that is reserved there next. */
async function holdWithNext(channel: string): Promise<{ item: Item; next: ItemId }> {
  const { makeItem, take, sign, db, relayWith } = fixture
  const [item, next] = [await take(await makeItem(), channel), await makeItem()]
  const signed = await sign(item, `signed on ${channel} ${item.job}`)
  const waiting = await findItem(db, next)
  if (!waiting || !(await reserve(relayWith(channel), waiting, item))) throw new Error('nothing was reserved')
  return { item: signed, next }
}

test.each([
  ['is paid', (item: Item) => end(fixture.relayWith(), item, { status: 'paid', hash: 'hash' })],
  ['fails', (item: Item) => end(fixture.relayWith(), item, { status: 'failed', error: 'why' })],
  ['is returned', (item: Item) => requeue(fixture.relayWith(), item, { because: 'handed-over' })],
])('an item that %s locks the next item of its channel before the channel', async (_, end) => {
  await fixture.makeChannels('A')
  const { item, next } = await holdWithNext('A')
  expect(await whileLocked(rowOf(next), () => end(item), isFree(channelRow('A')))).toBe(true)
  expect(await fixture.channelOf('A')).toMatchObject({ itemJob: next.job, nextJob: null })
  expect(await findItem(fixture.db, next)).toMatchObject({ status: 'taken', channel: 'A' })
})

test('moves a reservation by locking both channels in the order of their addresses', async () => {
  await fixture.makeChannels('A', 'B')
  const { next } = await holdWithNext('B')
  const held = await fixture.take(await fixture.makeItem(), 'A')
  const waiting = await findItem(fixture.db, next)
  if (!waiting) throw new Error('an item is missing')
  const reserveAgain = () => reserve(fixture.relayWith('A', 'B'), waiting, held)
  expect(await whileLocked(channelRow('A'), reserveAgain, isFree(channelRow('B')))).toBe(true)
  expect(await fixture.channelOf('A')).toMatchObject({ nextJob: next.job })
  expect(await fixture.channelOf('B')).toMatchObject({ nextJob: null })
})

test('frees the channel if its reservation is canceled while the item ends', async () => {
  await fixture.makeChannels('A')
  const { item, next } = await holdWithNext('A')
  const gone = async () => {
    await other.query(`UPDATE relay_channels SET next_job = NULL, next_position = NULL`)
    await other.query('COMMIT')
    await other.query('BEGIN')
  }
  await whileLocked(rowOf(next), () => end(fixture.relayWith(), item, { status: 'paid', hash: 'hash' }), gone)
  expect(await fixture.statusOf(next)).toBe('queued')
  expect(await fixture.db.select().from(relayChannels)).toMatchObject([{ itemJob: null, nextJob: null }])
})
