import { mkdirSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { createPool, VercelClient } from '@vercel/postgres'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { migrate as migratePg } from 'drizzle-orm/node-postgres/migrator'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { migrate as migratePglite } from 'drizzle-orm/pglite/migrator'
import { drizzle as drizzleVercel } from 'drizzle-orm/vercel-postgres'
import { migrate as migrateVercel } from 'drizzle-orm/vercel-postgres/migrator'
import { Pool } from 'pg'
import { isMigrated, MIGRATIONS, migrateUnderLock } from './db-migration.ts'
import { guardPool } from './db-pool.ts'
import { type Database, schema } from './db-schema.ts'

/** A migrated database, and its end. */
export interface Connection {
  database: Database
  close(): Promise<void>
}

/** A PostgreSQL: where, how many connections of it at most, and the WebSocket proxy in front of it, if there is one. */
export interface Server {
  url: string
  connections: number
  webSocketProxy: string | undefined
}

/** How long a statement may stay without an answer before its connection is given up. */
const SILENCE_MS = 20_000

const FOLDER = { migrationsFolder: MIGRATIONS }

/** PGlite in a folder, or in memory. One connection in one process, so that nobody else migrates at the same time. */
export async function connectPglite(directory: string | null): Promise<Connection> {
  if (directory !== null) mkdirSync(directory, { recursive: true })
  const client = await PGlite.create(directory ?? 'memory://')
  const database = drizzlePglite(client, { schema })
  return await once({ database, close: () => client.close() }, async () => {
    if (!(await isMigrated(database))) await migratePglite(database, FOLDER)
  })
}

/** PostgreSQL over TCP. */
export async function connectPg(server: Server): Promise<Connection> {
  const pool = new Pool(poolOptions(server))
  guardPool(pool)
  const database = drizzlePg(pool, { schema })
  return await once({ database, close: () => pool.end() }, () =>
    migrateUnderLock(database, () => migratePg(database, FOLDER)),
  )
}

/** PostgreSQL over a WebSocket: a pooled Neon host, which is all that the driver takes beside localhost. */
export async function connectVercel(server: Server): Promise<Connection> {
  const pool = createPool(poolOptions(server))
  if (server.webSocketProxy !== undefined) pool.Client = clientThrough(server.webSocketProxy)
  guardPool(pool)
  const database = drizzleVercel(pool, { schema })
  return await once({ database, close: () => pool.end() }, () =>
    migrateUnderLock(database, () => migrateVercel(database, FOLDER)),
  )
}

/** Whether the URL is one of a pooled Neon host, which `@vercel/postgres` takes. */
export function isPooledNeon(url: string): boolean {
  return new URL(url).hostname.includes('-pooler.')
}

/** The connection, once its database is migrated; closed if that fails. */
async function once(connection: Connection, migrated: () => Promise<void>): Promise<Connection> {
  try {
    await migrated()
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

function poolOptions({ url, connections }: Server) {
  return { connectionString: url, max: connections, connectionTimeoutMillis: 10_000, query_timeout: SILENCE_MS }
}

/**
 * The driver speaks to Neon's own proxy, which ends TLS and knows what is sent ahead. A plain one does neither. What is
 * set is set on each client, since the driver brings a copy of Neon's library of its own, which nobody else can import.
 */
function clientThrough(webSocketProxy: string): typeof VercelClient {
  return class extends VercelClient {
    constructor(config: ConstructorParameters<typeof VercelClient>[0]) {
      super(config)
      Object.assign(this.neonConfig, {
        wsProxy: webSocketProxy,
        useSecureWebSocket: false,
        pipelineTLS: false,
        pipelineConnect: false,
      })
    }
  }
}
