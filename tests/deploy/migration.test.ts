import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import config from '#drizzle/drizzle.config.ts'
import { migrateStore, openStore, type StoreLocation, sqlState } from '#lib/db/connection.ts'
import { innermostReason } from '#lib/db/errors.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { startWebSocketProxy, type WebSocketProxy } from '../support/web-socket-proxy.ts'

const RESET = 'DROP SCHEMA public CASCADE; CREATE SCHEMA public;'
const OWN = 'public.confidential_payroll_migrations'
/** drizzle's own default, in which earlier versions wrote, and which anybody may use. */
const DEFAULT = 'drizzle.__drizzle_migrations'
const MAKE_DEFAULT = `CREATE SCHEMA drizzle;
  CREATE TABLE ${DEFAULT} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at bigint);`
const OF_OTHERS = `INSERT INTO ${DEFAULT} (hash, created_at) VALUES ('of others', 9999999999999);`

/** One migration that makes indexes, and the statements that undo it. */
const INDEXES = readFileSync('drizzle/migrations/0007_figures.sql', 'utf8')
const hash = createHash('sha256').update(INDEXES).digest('hex')
const names = [...INDEXES.matchAll(/CREATE INDEX "(\w+)"/g)].map(([, name]) => name ?? '')
const UNDO = `DELETE FROM ${OWN} WHERE hash = '${hash}'; ${names.map((name) => `DROP INDEX ${name};`).join(' ')}`

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
  await client.query(`${RESET} DROP SCHEMA IF EXISTS drizzle CASCADE`)
  await migrateStore({ url: clone.url })
})

const drivers: [string, () => { url: string; webSocketProxy?: string }][] = [
  ['pg', () => ({ url: clone.url })],
  ['Vercel', () => ({ url: clone.url.replace('127.0.0.1', 'localhost'), webSocketProxy: proxy.address })],
]

async function rowsOf(table: string): Promise<unknown[]> {
  return (await client.query(`SELECT hash, created_at FROM ${table} ORDER BY created_at, id`)).rows
}

/** Which of those indexes are there. */
async function indexes(): Promise<string[]> {
  const { rows } = await client.query('SELECT indexname FROM pg_indexes WHERE indexname = ANY ($1)', [names])
  return rows.map(({ indexname }) => indexname)
}

/** Opens it, and closes it again: resolves to what came of it. */
async function outcomeOf(location: StoreLocation): Promise<unknown> {
  const store = openStore(location)
  return await store
    .database()
    .then(
      async (db) => (await db.execute(sql`SELECT 1 FROM sponsored_transfers`)) && 'migrated',
      (error: unknown) => error,
    )
    .finally(store.close)
}

test('drizzle-kit is told of the same table', () => {
  expect(`${config.migrations?.schema}.${config.migrations?.table}`).toBe(OWN)
})

describe.each(drivers)('over %s', (_, location) => {
  test('a statement of a migration may take longer than any other: who needs the database is told meanwhile', async () => {
    await client.query(`${RESET}
      CREATE SCHEMA IF NOT EXISTS slow;
      CREATE OR REPLACE FUNCTION slow.down() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'public.sponsored_transfers')
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
    expect(await indexes()).toHaveLength(names.length)
    await client.query(RESET)
    // Whoever asked for nothing else waits for it.
    await migrateStore({ ...location(), silenceMs: 500 })
    expect(await indexes()).toHaveLength(names.length)
    await client.query('DROP EVENT TRIGGER slow')
  })

  test('a table that is in use is waited for, not for ever, and the migration comes at a later use', async () => {
    await client.query(UNDO)
    await client.query('BEGIN')
    await client.query("INSERT INTO sponsor_floats (sponsor) VALUES ('kept')")
    await client.query('LOCK TABLE sponsored_transfers IN ROW EXCLUSIVE MODE')
    const store = openStore(location())
    await expect(store.database()).rejects.toSatisfy(({ cause }) => sqlState(cause) === '55P03')
    await client.query('COMMIT')
    expect(await indexes()).toEqual([])
    const db = await store.database()
    expect(await indexes()).toHaveLength(names.length)
    expect(await db.query.sponsorFloats.findMany({ columns: { sponsor: true } })).toEqual([{ sponsor: 'kept' }])
    await store.close()
  })

  test('a connection that is cut says why, though the ROLLBACK fails, too', async () => {
    await client.query(UNDO)
    await other.query('BEGIN; LOCK TABLE sponsored_transfers IN ROW EXCLUSIVE MODE')
    const cut = migrateStore(location()).then(() => 'migrated', innermostReason)
    const waiting = "pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND query LIKE 'CREATE INDEX%'"
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${waiting}`
    await expect.poll(async () => (await client.query(end)).rowCount, { interval: 20 }).toBe(1)
    await other.query('ROLLBACK')
    expect(await cut).toBe('terminating connection due to administrator command')
  })

  test('a migration that fails leaves nothing behind', async () => {
    await client.query(`${UNDO} CREATE INDEX ${names.at(-1)} ON quotas (day)`)
    expect(await outcomeOf(location())).toMatchObject({ code: 'unavailable', cause: { cause: { code: '42P07' } } })
    expect(await indexes()).toHaveLength(1)
    await client.query(`DROP INDEX ${names.at(-1)}`)
    expect(await outcomeOf(location())).toBe('migrated')
  })
})

describe('drizzle’s default table', () => {
  const local = () => ({ url: clone.url })

  test('is not looked at: others may use it in the same database', async () => {
    await client.query(`${RESET} ${MAKE_DEFAULT} ${OF_OTHERS}`)
    const theirs = await rowsOf(DEFAULT)
    expect(await outcomeOf(local())).toBe('migrated')
    expect(await outcomeOf(local())).toBe('migrated')
    expect(await rowsOf(DEFAULT)).toEqual(theirs)
  })

  test('has what an earlier version did, which is taken over once, and by one of many', async () => {
    const all = await rowsOf(OWN)
    await client.query(`${UNDO} ${MAKE_DEFAULT} ${OF_OTHERS}
      INSERT INTO ${DEFAULT} (hash, created_at) SELECT hash, created_at FROM ${OWN} ORDER BY id; DROP TABLE ${OWN};
      INSERT INTO sponsor_floats (sponsor) VALUES ('kept')`)
    const before = await rowsOf(DEFAULT)
    expect(before).toHaveLength(all.length)
    const together = await Promise.all([1, 2, 3].map(() => outcomeOf(local())))
    expect([...together, await outcomeOf(local())]).toEqual(['migrated', 'migrated', 'migrated', 'migrated'])
    expect(await rowsOf(OWN)).toEqual(all)
    expect(await rowsOf(DEFAULT)).toEqual(before)
    expect(await indexes()).toHaveLength(names.length)
    expect((await client.query('SELECT sponsor FROM sponsor_floats')).rows).toEqual([{ sponsor: 'kept' }])
  })

  test('may be about tables that were dropped since: then all of it is done again', async () => {
    await client.query(`${MAKE_DEFAULT} INSERT INTO ${DEFAULT} (hash, created_at) SELECT hash, created_at FROM ${OWN}`)
    await client.query(RESET)
    expect(await outcomeOf(local())).toBe('migrated')
  })

  test('may be closed to this service', async () => {
    await client.query(`${RESET} ${MAKE_DEFAULT} ${OF_OTHERS} DROP ROLE IF EXISTS payroll_service;
      CREATE ROLE payroll_service LOGIN PASSWORD 'of its own'; GRANT ALL ON SCHEMA public TO payroll_service`)
    const url = new URL(clone.url)
    Object.assign(url, { username: 'payroll_service', password: 'of its own' })
    expect(await outcomeOf({ url: url.href })).toBe('migrated')
    await client.query(`${RESET} DROP ROLE payroll_service`)
  })
})

describe('npm run migrate', () => {
  /** What it prints, and how it ends, for a URL that is that of the database but for `change`. */
  async function run(change: Partial<URL>): Promise<{ code: unknown; said: string }> {
    const url = Object.assign(new URL(clone.url), change)
    const env = { PATH: process.env.PATH, DATABASE_URL: url.href } as unknown as NodeJS.ProcessEnv
    const child = spawn(process.execPath, ['lib/cli/migrate.ts'], { stdio: ['ignore', 'pipe', 'pipe'], env })
    const said: string[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => said.push(String(part)))
    const [code] = await once(child, 'close')
    return { code, said: said.join('') }
  }

  test('migrates', async () => {
    await client.query(RESET)
    expect(await run({})).toEqual({ code: 0, said: 'the database is migrated\n' })
    expect(await indexes()).toHaveLength(names.length)
  })

  test.each<[string, Partial<URL>, RegExp]>([
    ['a wrong password', { password: 'wrong-password' }, /password authentication failed for user "postgres"/],
    ['no such database', { pathname: '/nowhere' }, /database "nowhere" does not exist/],
    ['nobody at the port', { port: '1', password: 'wrong-password' }, /ECONNREFUSED/],
    [
      'no such host',
      { hostname: 'nowhere.invalid', password: 'wrong-password' },
      /(ENOTFOUND|EAI_AGAIN) nowhere\.invalid/,
    ],
    ['no such host of Neon', { hostname: `${'x'.repeat(57)}-pooler.neon.tech` }, /ENOTFOUND x+-pooler\.neon\.tech/],
    ['a server without TLS', { search: '?sslmode=verify-full' }, /does not support SSL/],
  ])('%s: says so in one line, and does not tell the password', async (_, change, reason) => {
    const { code, said } = await run(change)
    expect(code).toBe(1)
    expect(said).toMatch(/^not migrated: .+\n$/)
    expect(said).toMatch(reason)
    expect(said).not.toContain('wrong-password')
  })
})
