import { existsSync, mkdirSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { createPool, VercelClient } from '@vercel/postgres'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzleVercel } from 'drizzle-orm/vercel-postgres'
import { Pool } from 'pg'
import { EXTENSIONS, openDurablePglite, syncFolder } from './durable-files.ts'
import { isMigrated, migrate } from './migration.ts'
import { guardPool, SESSION, setSession } from './pool.ts'
import { type Database, schema } from './schema.ts'
import { copyTemplate } from './template.ts'

/** A migrated database and the function that closes it. */
export interface Connection {
  database: Database
  close(): Promise<void>
}

/** A PostgreSQL server: its URL, limits, and the optional WebSocket proxy in front of it. */
export interface Server extends Limits {
  url: string
  webSocketProxy: string | undefined
}

interface Limits {
  /** at most */
  connections: number
  /** how long a statement may go without a response before its connection is closed */
  silenceMs: number
}

/**
 * Migrations use a separate connection without a short timeout: an index on a large table can take hours, and would
 * never be built if each attempt were aborted. A server that is silent for an hour counts as lost.
 */
const MIGRATION: Limits = { connections: 1, silenceMs: 60 * 60_000 }

/** PGlite in a folder, or in memory. One connection in one process, so no other process migrates at the same time. */
export async function connectPglite(directory: string | null): Promise<Connection> {
  const isNew = directory !== null && !existsSync(directory)
  if (directory !== null) {
    copyTemplate(directory)
    mkdirSync(directory, { recursive: true })
  }
  const inMemory = () => PGlite.create('memory://', { extensions: EXTENSIONS })
  const client = await (directory === null ? inMemory() : openDurablePglite(directory))
  const database = drizzlePglite(client, { schema })
  return await once({ database, close: () => client.close() }, async () => {
    await client.exec(SESSION)
    if (!(await isMigrated(database))) await migrate(database)
    if (isNew) syncFolder(directory)
  })
}

export async function connectPg(server: Server): Promise<Connection> {
  return await connectMigrated(server, (limits) => {
    // Firewalls and proxies drop idle connections, so the system sends keep-alive packets.
    const pool = new Pool({ ...poolOptions(server.url, limits), keepAlive: true, keepAliveInitialDelayMillis: 30_000 })
    guardPool(pool)
    return { database: drizzlePg(pool, { schema }), close: () => pool.end() }
  })
}

/** PostgreSQL over a WebSocket. Apart from localhost, the driver accepts only pooled Neon hosts. */
export async function connectVercel(server: Server): Promise<Connection> {
  return await connectMigrated(server, (limits) => {
    const pool = createPool(poolOptions(server.url, limits))
    if (server.webSocketProxy !== undefined) pool.Client = clientThrough(server.webSocketProxy)
    guardPool(pool)
    return { database: drizzleVercel(pool, { schema }), close: () => pool.end() }
  })
}

/** Neon's pooled hosts, under its domain and under the former domain of Vercel Postgres. */
const POOLED_NEON = /-pooler\.([\w-]+\.)*(neon\.tech|postgres\.vercel-storage\.com)$/

/**
 * Whether the URL has a pooled Neon host, as `@vercel/postgres` requires. Other providers name their poolers in the same
 * way, so this checks the domain.
 */
export function isPooledNeon(url: string): boolean {
  return POOLED_NEON.test(new URL(url).hostname)
}

async function connectMigrated(server: Server, open: (limits: Limits) => Connection): Promise<Connection> {
  const connection = open(server)
  return await once(connection, async () => {
    if (await isMigrated(connection.database)) return
    const { database, close } = open(MIGRATION)
    await migrate(database).finally(close)
  })
}

/** Waits until the database is migrated, and closes the connection if that fails. */
async function once(connection: Connection, migrated: () => Promise<void>): Promise<Connection> {
  try {
    await migrated()
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

function poolOptions(url: string, { connections, silenceMs }: Limits) {
  const limits = { max: connections, connectionTimeoutMillis: 10_000, query_timeout: silenceMs }
  return { connectionString: url, ...limits, ...setSession }
}

/**
 * The driver expects Neon's proxy, which terminates TLS and accepts pipelined messages. A plain proxy does neither. The
 * options are set on each client, since the driver bundles its own copy of Neon's library.
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
