import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { inject } from 'vitest'
import { openStore, type Store } from '#lib/db.ts'

/** A migrated PostgreSQL database of the test file's own, cloned from the run's template. */
export async function cloneDatabase(): Promise<{ url: string; store: Store; drop(): Promise<void> }> {
  const { serverUrl, template } = inject('postgres')
  const name = `t_${randomUUID().replaceAll('-', '')}`
  await onServer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  const store = openStore({ url: url.href })
  return {
    url: url.href,
    store,
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
