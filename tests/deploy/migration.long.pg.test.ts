import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { inspect } from 'node:util'
import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import config from '#drizzle/drizzle.config.ts'
import { migrateStore, openStore, type StoreLocation, sqlState } from '#lib/db/connection.ts'
import { innermostReason } from '#lib/db/errors.ts'
import { readMigrations } from '#lib/db/migration.ts'
import { CHILD_VARIABLES } from '../support/child-variables.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { startWebSocketProxy, type WebSocketProxy } from '../support/web-socket-proxy.ts'

const RESET = 'DROP SCHEMA public CASCADE; CREATE SCHEMA public;'
const OWN = 'public.confidential_payroll_migrations'

let clone: TestDatabase
let client: Client
let other: Client
let proxy: WebSocketProxy
beforeAll(async () => {
  clone = await cloneDatabase()
  client = new Client({ connectionString: clone.url })
  other = new Client({ connectionString: clone.url })
  await Promise.all([client.connect(), other.connect()])
  proxy = await startWebSocketProxy(clone.url)
})
afterAll(async () => {
  await Promise.all([client.end(), other.end()])
  await proxy.close()
  await clone.drop()
})
beforeEach(async () => {
  // A failed test may have left a lock behind.
  for (const each of [client, other]) await each.query('ROLLBACK')
  await client.query(RESET)
})

const drivers: [string, () => { url: string; webSocketProxy?: string }][] = [
  ['pg', () => ({ url: clone.url })],
  ['Vercel', () => ({ url: clone.url.replace('127.0.0.1', 'localhost'), webSocketProxy: proxy.address })],
]

/** The existing tables of the service. */
async function tables(): Promise<string[]> {
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
  return rows.map(({ tablename }) => tablename)
}

/** Opens and closes the database; resolves to 'migrated' or the error. */
async function outcomeOf(location: StoreLocation): Promise<unknown> {
  const store = openStore(location)
  return await store
    .database()
    .then(
      async (db) => (await db.execute(sql`SELECT 1 FROM organisations`)) && 'migrated',
      (error: unknown) => error,
    )
    .finally(store.close)
}

test('records migrations in the same table as drizzle-kit', () => {
  expect(`${config.migrations?.schema}.${config.migrations?.table}`).toBe(OWN)
})

describe.each(drivers)('over %s', (_, location) => {
  test('lets a slow migration finish, and responds unavailable until then', async () => {
    await client.query(`CREATE SCHEMA IF NOT EXISTS slow;
      CREATE OR REPLACE FUNCTION slow.down() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'public.organisations')
        THEN PERFORM pg_sleep(2); END IF;
      END $$;
      CREATE EVENT TRIGGER slow ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION slow.down()`)
    const store = openStore({ ...location(), silenceMs: 500 })
    await expect(store.database()).rejects.toMatchObject({ code: 'unavailable' })
    const answer = () =>
      store.database().then(
        () => 'there',
        ({ code }) => code,
      )
    await expect.poll(answer).toBe('there')
    await store.close()
    expect(await tables()).toContain('organisations')
    await client.query(RESET)
    // `migrateStore` serves no requests, so it waits for the migration.
    await migrateStore({ ...location(), silenceMs: 500 })
    expect(await tables()).toContain('organisations')
    await client.query('DROP EVENT TRIGGER slow')
  })

  test('gives up waiting for a lock, and migrates on a later use', async () => {
    await client.query('BEGIN; CREATE TABLE organisations (id uuid)')
    const store = openStore(location())
    await expect(store.database()).rejects.toSatisfy(({ cause }) => sqlState(cause) === '55P03')
    await client.query('ROLLBACK')
    expect(await tables()).toEqual([])
    await store.database()
    expect(await tables()).toContain('organisations')
    await store.close()
  })

  test('reports why a migration lost its connection, not that its ROLLBACK failed', async () => {
    await other.query('BEGIN; CREATE TABLE organisations (id uuid)')
    const cut = migrateStore(location()).then(() => 'migrated', innermostReason)
    const waiting = "pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND query LIKE '%CREATE TABLE%'"
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${waiting}`
    await expect.poll(async () => (await client.query(end)).rowCount, { interval: 20 }).toBe(1)
    await other.query('ROLLBACK')
    expect(await cut).toBe('terminating connection due to administrator command')
  })

  test('leaves nothing behind after a failed migration', async () => {
    await client.query('CREATE TABLE organisations (id uuid)')
    expect(await outcomeOf(location())).toMatchObject({
      code: 'unavailable',
      cause: { name: 'OtherSchema', cause: { cause: { code: '42P07' } } },
    })
    expect(await tables()).toEqual(['organisations'])
    await client.query('DROP TABLE organisations')
    expect(await outcomeOf(location())).toBe('migrated')
  })
})

test('names the extension that the server refuses to create, and leaves nothing behind', async () => {
  await client.query(`CREATE SCHEMA IF NOT EXISTS closed;
    CREATE OR REPLACE FUNCTION closed.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'not allow-listed' USING ERRCODE = 'feature_not_supported'; END $$;
    CREATE EVENT TRIGGER closed ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION closed.refuse()`)
  const refused = await migrateStore({ url: clone.url }).catch((error: unknown) => error)
  await client.query('DROP EVENT TRIGGER closed')
  expect(innermostReason(refused)).toBe(
    'the extension pg_trgm cannot be created (not allow-listed): see docs/deploy.md, “One server”',
  )
  expect(sqlState(refused)).toBe('0A000')
  expect(await tables()).toEqual([])
})

test('reports a later migration that fails by its own error, not as tables of no release', async () => {
  expect(await outcomeOf({ url: clone.url })).toBe('migrated')
  await client.query(`DELETE FROM ${OWN} WHERE created_at = (SELECT max(created_at) FROM ${OWN})`)
  const outcome = await outcomeOf({ url: clone.url })
  expect(innermostReason(outcome)).toMatch(/already exists/)
  expect(inspect(outcome)).not.toContain('no release')
})

test('migrates once when several instances start together, and does not use drizzle’s default table', async () => {
  await client.query(`DROP SCHEMA IF EXISTS drizzle CASCADE; CREATE SCHEMA drizzle;
    CREATE TABLE drizzle.__drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at bigint);
    INSERT INTO drizzle.__drizzle_migrations (hash, created_at) VALUES ('of others', 9999999999999)`)
  const together = await Promise.all([...drivers, ...drivers].map(([, location]) => outcomeOf(location())))
  expect(together).toEqual(Array(4).fill('migrated'))
  const count = async (table: string) => (await client.query(`SELECT FROM ${table}`)).rowCount
  expect([await count('drizzle.__drizzle_migrations'), await count(OWN)]).toEqual([1, readMigrations().length])
})

describe('npm run migrate', () => {
  /** Runs the command with a changed database URL. Resolves to its exit code and output. */
  async function run(change: Partial<URL>): Promise<{ code: unknown; output: string }> {
    const url = Object.assign(new URL(clone.url), change)
    const env = { ...CHILD_VARIABLES, DATABASE_URL: url.href } as unknown as NodeJS.ProcessEnv
    const child = spawn(process.execPath, ['lib/cli/migrate.ts'], { stdio: ['ignore', 'pipe', 'pipe'], env })
    const output: string[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => output.push(String(part)))
    const [code] = await once(child, 'close')
    return { code, output: output.join('') }
  }

  test('migrates', async () => {
    expect(await run({})).toEqual({
      code: 0,
      output: expect.stringMatching(/"migrated".*\nthe database is migrated\n$/),
    })
    expect(await tables()).toContain('organisations')
  })

  test.each<[string, Partial<URL>, RegExp]>([
    ['a wrong password', { password: 'wrong-password' }, /password authentication failed for user "postgres"/],
    ['no such database', { pathname: '/nowhere' }, /database "nowhere" does not exist/],
    ['a closed port', { port: '1', password: 'wrong-password' }, /ECONNREFUSED/],
    [
      'no such host',
      { hostname: 'nowhere.invalid', password: 'wrong-password' },
      /(ENOTFOUND|EAI_AGAIN) nowhere\.invalid/,
    ],
    ['no such host of Neon', { hostname: `${'x'.repeat(57)}-pooler.neon.tech` }, /ENOTFOUND x+-pooler\.neon\.tech/],
    ['a server without TLS', { search: '?sslmode=verify-full' }, /does not support SSL/],
  ])('reports %s in one line, without the password', async (_, change, reason) => {
    const { code, output } = await run(change)
    expect(code).toBe(1)
    expect(output).toMatch(/^not migrated: .+\n$/)
    expect(output).toMatch(reason)
    expect(output).not.toContain('wrong-password')
  })
})
