import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { inject } from 'vitest'
import { openStore, type Store } from '#lib/db.ts'
import type { PostgresTemplate } from './global-setup.ts'

/** A migrated database of the test file's own. */
export interface TestDatabase {
  url: string
  store: Store
  /** what each service on it must be given: nobody but its one store gets at a PGlite in memory */
  shared: Store | undefined
  drop(): Promise<void>
}

/** A URL that is configured and never used: the service is given the database itself. */
const NOWHERE = 'postgres://pglite.invalid/memory'

/** A clone of the PostgreSQL template, or a PGlite in memory, whichever this run is for. */
export async function cloneDatabase(): Promise<TestDatabase> {
  const postgres = inject('postgres')
  if (postgres) return await cloneTemplate(postgres)
  const store = openStore({ directory: null })
  await store.database()
  return { url: NOWHERE, store, shared: store, drop: store.close }
}

async function cloneTemplate({ serverUrl, template }: PostgresTemplate): Promise<TestDatabase> {
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
