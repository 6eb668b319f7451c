import { Keypair } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '#lib/db/connection.ts'
import { cloneDatabase } from '../support/database.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { poolerName, startTransactionPooler, type TransactionPooler } from '../support/transaction-pooler.ts'
import { startWebSocketProxy } from '../support/web-socket-proxy.ts'

// A pooler in transaction mode hands the statements of one connection to changing sessions.

let pooler: TransactionPooler
let service: TestService
beforeAll(async () => {
  const database = await cloneDatabase()
  pooler = await startTransactionPooler(database.url)
  service = await openTestService({ database, variables: { DATABASE_URL: pooler.url } })
})
afterAll(async () => {
  await service?.close()
  await pooler?.close()
})

const openSession = (of: TestService) => of.wallet(Keypair.random().publicKey())

test(`serves users who arrive together behind ${poolerName}`, async () => {
  const ask = async (session: string) => {
    const me = await service.ask('GET', '/me', { session })
    const contractors = await service.ask('GET', '/contractors', { session })
    const created = await service.ask('POST', '/contractors', { session, body: { name: 'Ann' } })
    return [me.status, contractors.status, created.status]
  }
  const sessions = await Promise.all(Array.from({ length: 48 }, () => openSession(service)))
  for (let round = 0; round < 2; round += 1) {
    const answers = await Promise.all(sessions.map(ask))
    expect(answers).toEqual(sessions.map(() => [200, 200, 200]))
  }
})

test('performs concurrent requests with one Idempotency-Key once', async () => {
  const session = await openSession(service)
  const create = () =>
    service.ask('POST', '/contractors', { session, body: { name: 'Ann' }, headers: { 'Idempotency-Key': 'k' } })
  const answers = await Promise.all(Array.from({ length: 8 }, create))
  const made = answers.filter(({ status, headers }) => status === 200 && !headers.has('idempotency-replayed'))
  expect(made).toHaveLength(1)
  const again = await create()
  expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([made[0]?.body, 'true'])
  expect((await service.ask('GET', '/contractors', { session })).body.contractors).toHaveLength(1)
})

/** A database whose new sessions have other settings than the service expects. */
async function cloneWithDefaults() {
  const database = await cloneDatabase()
  const client = new Client({ connectionString: database.url })
  await client.connect()
  const name = new URL(database.url).pathname.slice(1)
  for (const setting of [
    `DateStyle = 'SQL, DMY'`,
    `TimeZone = 'Asia/Kathmandu'`,
    'standard_conforming_strings = off',
  ]) {
    await client.query(`ALTER DATABASE ${name} SET ${setting}`)
  }
  await client.end()
  return database
}

test('reads and writes dates and backslashes although the database has other defaults', async () => {
  const other = await openTestService({
    database: await cloneWithDefaults(),
    now: new Date('2026-11-05T23:30:00.000Z'),
  })
  try {
    const session = await openSession(other)
    const { status, body } = await other.ask('POST', '/batches', { session, body: { name: String.raw`C:\new` } })
    expect([status, body.createdAt]).toEqual([200, '2026-11-05T23:30:00.000Z'])
    const read = await other.ask('GET', `/batches/${body.id}`, { session })
    expect(read.body).toMatchObject({ name: String.raw`C:\new`, createdAt: '2026-11-05T23:30:00.000Z' })
  } finally {
    await other.close()
  }
})

test.each(['pg', 'Vercel'])('sets what each session depends on, over %s', async (driver) => {
  const { url } = await cloneWithDefaults()
  const proxy = driver === 'Vercel' ? await startWebSocketProxy(url) : undefined
  const store = openStore({
    url: url.replace('127.0.0.1', 'localhost'),
    ...(proxy && { webSocketProxy: proxy.address }),
  })
  try {
    const db = await store.database()
    const read = async () => {
      const settings = await db.execute(
        sql`SELECT current_setting('DateStyle') AS style, current_setting('TimeZone') AS zone, current_setting('standard_conforming_strings') AS strings`,
      )
      return (settings as unknown as { rows: unknown[] }).rows[0]
    }
    // Several connections, each new.
    const found = await Promise.all([read(), read(), read()])
    expect(found).toEqual(found.map(() => ({ style: 'ISO, MDY', zone: 'UTC', strings: 'on' })))
  } finally {
    await store.close()
    await proxy?.close()
  }
})
