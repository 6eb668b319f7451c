import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type SQL, sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { organisations } from '#drizzle/schema/directory.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { openStore, type Store, type StoreLocation, transact } from '#lib/db/connection.ts'
import { isPooledNeon } from '#lib/db/drivers.ts'
import { startService } from '#lib/server/start.ts'
import { cloneDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'
import { type SilentProxy, startSilentProxy } from '../support/silent-proxy.ts'
import { startWebSocketProxy, type WebSocketProxy } from '../support/web-socket-proxy.ts'

const run = promisify(execFile)

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let silent: SilentProxy
let webSockets: WebSocketProxy
const stores: Record<string, Store> = {}

beforeAll(async () => {
  clone = await cloneDatabase()
  silent = await startSilentProxy(clone.url)
  webSockets = await startWebSocketProxy(silent.url)
  const local = new URL(silent.url)
  local.hostname = 'localhost'
  stores.pg = openStore({ url: silent.url, connections: 2 })
  stores.Vercel = openStore({ url: local.href, connections: 2, webSocketProxy: webSockets.address })
})
afterAll(async () => {
  for (const store of Object.values(stores)) await store.close()
  await webSockets.close()
  await silent.close()
  await clone.drop()
})

describe.each(['pg', 'Vercel'])('%s', (name) => {
  test('recovers from connections lost while transactions begin', async () => {
    const db = await stores[name]?.database()
    if (!db) throw new Error('no database')
    const both = () =>
      Promise.allSettled([1, 2].map(() => transact(db, (tx) => tx.execute(sql`SELECT pg_sleep(0.05)`))))
    expect((await both()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
    silent.fall()
    const cut = both()
    // By then both BEGINs are sent, because the connections are open.
    await new Promise((resolve) => setTimeout(resolve, 50))
    silent.cut()
    expect(await cut).toMatchObject([{ reason: { code: 'unavailable' } }, { reason: { code: 'unavailable' } }])
    silent.wake()
    expect((await both()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
  })
})

test.each([
  ['postgres://u:p@ep-calm-sea-1-pooler.eu-central-1.aws.neon.tech/db?sslmode=require', true],
  ['postgresql://u:p@ep-calm-sea-1.eu-central-1.aws.neon.tech/db', false],
  ['postgres://u:p@ep-calm-sea-1-pooler.eastus2.azure.neon.tech/db', true],
  ['postgres://u:p@ep-calm-sea-1-pooler.us-east-1.postgres.vercel-storage.com:5432/verceldb', true],
  ['postgres://u:-pooler.@db.example/-pooler.?application_name=-pooler.', false],
  // PgBouncer next to the database, named as Kubernetes operators do.
  ['postgres://u:p@payroll-pooler.default.svc.cluster.local:5432/db', false],
  ['postgres://u:p@payroll-pooler.neon.tech.example/db', false],
  ['postgres://u:p@payroll-pooler.notneon.tech/db', false],
  ['postgres://u:p@localhost:5432/db', false],
])('recognises whether %s is a pooled Neon host: %s', (url, is) => {
  expect(isPooledNeon(url)).toBe(is)
})

test.each<[string, StoreLocation]>([
  // A label of 64 letters is not a valid name, so no DNS query is sent.
  ['a pooled Neon host', { url: `postgres://u:p@${'x'.repeat(57)}-pooler.neon.tech/db` }],
  ['another provider’s pooler', { url: 'postgres://u:p@payroll-pooler.invalid/db' }],
  ['a proxy', { url: 'postgres://u:p@localhost/db', webSocketProxy: '127.0.0.1:1' }],
])('reports %s that does not exist as unavailable, and retries', async (_, location) => {
  const store = openStore(location)
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await expect(store.database()).rejects.toMatchObject({ code: 'unavailable' })
  }
  await store.close()
})

describe('a database of another version', () => {
  const later = sql`INSERT INTO confidential_payroll_migrations (hash, created_at) VALUES ('of a newer version', 9999999999999)`
  const contraction = sql`INSERT INTO contractions VALUES (1000)`
  const places: Record<string, () => Promise<StoreLocation>> = {
    pg: async () => ({ url: (await spare()).url }),
    Vercel: async () => {
      const url = new URL((await spare()).url)
      url.hostname = 'localhost'
      return { url: url.href, webSocketProxy: webSockets.address }
    },
    PGlite: async () => ({ directory: await mkdtemp(join(tmpdir(), 'payroll-newer-')) }),
  }
  const spares: Awaited<ReturnType<typeof cloneDatabase>>[] = []
  afterAll(async () => {
    for (const { drop } of spares) await drop()
  })

  async function spare() {
    const clone = await cloneDatabase()
    spares.push(clone)
    return clone
  }

  test.each(Object.entries(places))('is rejected by %s if its migrations are not recorded', async (_, choose) => {
    const location = await choose()
    const unrecorded = openStore(location)
    await (await unrecorded.database()).execute(sql`DROP TABLE confidential_payroll_migrations`)
    await unrecorded.close()
    const store = openStore(location)
    await expect(store.database()).rejects.toMatchObject({ code: 'unavailable', cause: { name: 'OtherSchema' } })
    await store.close()
  })

  test.each(Object.entries(places))('is used by %s if a newer version only added to it', async (_, choose) => {
    const location = await choose()
    const newer = openStore(location)
    await (await newer.database()).execute(later)
    await (await newer.database()).execute(sql`ALTER TABLE organisations ADD COLUMN since_then text DEFAULT 'new'`)
    await newer.close()
    const store = openStore(location)
    const name = `org-${Date.now()}`
    await (await store.database()).insert(organisations).values({ name })
    expect(await (await store.database()).select({ name: organisations.name }).from(organisations)).toContainEqual({
      name,
    })
    await store.close()
  })

  test.each<[string, SQL]>([
    [
      'a migration of no release',
      sql`UPDATE confidential_payroll_migrations SET created_at = 1, hash = 'of no release'`,
    ],
    [
      'an older migration in addition',
      sql`INSERT INTO confidential_payroll_migrations (hash, created_at) VALUES ('x', 1)`,
    ],
    [
      'no migration of this version',
      sql`UPDATE confidential_payroll_migrations SET created_at = 9999999999999, hash = 'x'`,
    ],
  ])('is refused if it records %s', async (_, change) => {
    const { url, store: before } = await spare()
    await (await before.database()).execute(change)
    const store = openStore({ url })
    await expect(store.database()).rejects.toMatchObject({ cause: { message: expect.stringContaining('no release') } })
    await store.close()
  })

  test.each(Object.entries(places))(
    'is refused by %s if a newer version removed what this one uses',
    async (_, choose) => {
      const location = await choose()
      const newer = openStore(location)
      await (await newer.database()).execute(later)
      await (await newer.database()).execute(contraction)
      await newer.close()
      const store = openStore(location)
      for (let attempt = 0; attempt < 2; attempt += 1) {
        await expect(store.database()).rejects.toMatchObject({
          code: 'unavailable',
          cause: { name: 'OtherSchema', message: expect.stringContaining('start the newer version') },
        })
      }
      await store.close()
    },
  )

  test('stops startup with the variable’s name', async () => {
    const { url, store } = await spare()
    await (await store.database()).execute(later)
    await (await store.database()).execute(contraction)
    const variables = {
      DATABASE_URL: url,
      SESSION_SECRET: 'a secret for tests, long enough for HS256',
      STELLAR_RPC_URL: 'http://127.0.0.1:1',
    }
    const starting = startService(readEnvironment(variables))
    await expect(starting).rejects.toMatchObject({ name: 'ConfigurationError', variable: 'DATABASE_URL' })
  })
})

test('stops startup with the reason if the embedded database does not open', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'database-'))
  await writeFile(join(folder, 'database'), 'a file instead of a folder')
  const env = { PATH: process.env.PATH, DATA_DIR: folder, DEVNET_PORT: String(await freePort()) }
  const code = "await (await import('#lib/server/start.ts')).boot()"
  const booting = run(process.execPath, ['--input-type=module', '-e', code], {
    env: env as unknown as NodeJS.ProcessEnv,
  })
  await expect(booting).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/"event":"boot","failure":".*the database cannot be reached.*caused by .*database/),
  })
  await rm(folder, { recursive: true })
})
