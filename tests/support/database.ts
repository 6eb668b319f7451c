import { randomUUID } from 'node:crypto'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { inject } from 'vitest'
import { openStore, type Store } from '#lib/db/connection.ts'
import { startPostgres } from './postgres-server.ts'
import type { PostgresTemplate } from './postgres-setup.ts'

/** A separate migrated database. */
export interface TestDatabase {
  url: string
  store: Store
  /** the store that services must share, because only one can open the folder of a PGlite */
  shared: Store | undefined
  drop(): Promise<void>
}

/** A placeholder: the service gets the store instead of a URL. */
const NOWHERE = 'postgres://pglite.invalid/folder'

/** Clones the PostgreSQL template or copies the PGlite one, depending on the project of the run. */
export async function cloneDatabase(): Promise<TestDatabase> {
  const postgres = inject('postgres')
  if (postgres) return await clonePostgres(postgres)
  const pglite = inject('pglite')
  if (pglite === undefined) throw new Error('this test file gets no database: name it *.pg.test.ts or *.db.test.ts')
  return await copyPglite(pglite)
}

/**
 * A migrated database on a separate PostgreSQL server: for tests of work that waits for all older transactions of the
 * server, such as new indexes.
 */
export async function startDatabase(): Promise<TestDatabase> {
  const { url, remove } = await startPostgres()
  const store = openStore({ url })
  await store.database()
  return {
    url,
    store,
    shared: undefined,
    drop: async () => {
      await store.close()
      await remove()
    },
  }
}

/** A database without tables on the run's PostgreSQL. */
export async function emptyDatabase(): Promise<Pick<TestDatabase, 'url' | 'drop'>> {
  const postgres = inject('postgres')
  if (!postgres) throw new Error('only a test on PostgreSQL gets an empty database')
  const { serverUrl } = postgres
  const name = `t_${randomUUID().replaceAll('-', '')}`
  await onServer(serverUrl, `CREATE DATABASE ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`) }
}

async function copyPglite(template: string): Promise<TestDatabase> {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-pglite-'))
  await cp(template, directory, { recursive: true })
  const store = openStore({ directory })
  await store.database()
  return {
    url: NOWHERE,
    store,
    shared: store,
    drop: async () => {
      await store.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function clonePostgres({ serverUrl, template }: PostgresTemplate): Promise<TestDatabase> {
  const name = `t_${randomUUID().replaceAll('-', '')}`
  await onServer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  const store = openStore({ url: url.href })
  return {
    url: url.href,
    store,
    shared: undefined,
    drop: async () => {
      await store.close()
      await onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
