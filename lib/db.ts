import { sql } from 'drizzle-orm'
import { type Connection, connectPg, connectPglite, connectVercel, isPooledNeon } from './db-drivers.ts'
import { sqlState, unreachable } from './db-failure.ts'
import type { Database } from './db-schema.ts'

export { databaseFailure, isUnreachable, sqlState, violatedConstraint } from './db-failure.ts'
export type { Database } from './db-schema.ts'

/** The way to the database: connects and migrates at first use, and again after a failure. */
export interface Store {
  /** @throws Refusal `unavailable` while the database cannot be reached, or is one that a newer version has migrated */
  database(): Promise<Database>
  close(): Promise<void>
}

/**
 * Where the database is: a folder for the embedded PGlite (null: in memory), or the URL of a PostgreSQL. The host of the
 * URL decides the driver. `webSocketProxy` (host:port) stands in for Neon's, in front of a PostgreSQL on localhost.
 * `connections` is the most that this process holds at once, two at the least: one for the lock under which another
 * migrates.
 */
export type StoreLocation =
  | { directory: string | null }
  | { url: string; connections?: number; webSocketProxy?: string }

/** How many connections a process holds that has the machine to itself. */
const CONNECTIONS = 10

export function openStore(location: StoreLocation): Store {
  let connected: Promise<Connection> | undefined
  return {
    database: async () => {
      connected ??= connect(location)
      const awaited = connected
      try {
        return (await awaited).database
      } catch (cause) {
        // Whoever comes back late must not forget the connection that somebody else has begun since.
        if (connected === awaited) connected = undefined
        throw unreachable(cause)
      }
    },
    close: async () => {
      const open = await connected?.catch(() => undefined)
      await open?.close()
    },
  }
}

function connect(location: StoreLocation): Promise<Connection> {
  if ('directory' in location) return connectPglite(location.directory)
  const { url, connections = CONNECTIONS, webSocketProxy } = location
  const server = { url, connections, webSocketProxy }
  return webSocketProxy !== undefined || isPooledNeon(url) ? connectVercel(server) : connectPg(server)
}

const ATTEMPTS = 3

/**
 * The server's own limits on a transaction: it aborts and says so, in whatever pooler's connection it runs. They are
 * shorter than the silence after which a connection is given up.
 */
const LIMITS = sql`SELECT set_config('lock_timeout', '5s', true), set_config('statement_timeout', '10s', true),
  set_config('idle_in_transaction_session_timeout', '15s', true)`

/**
 * Runs `work` in one SQL transaction, again when PostgreSQL asks for it (deadlock, serialisation failure).
 * Inside, only `tx` may be used: PGlite is one connection, and waiting for another would be for ever.
 * @throws Refusal `unavailable` when no transaction can be begun
 */
export async function transact<Result>(db: Database, work: (tx: Database) => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    let begun = false
    try {
      return await db.transaction(async (tx) => {
        begun = true
        await tx.execute(LIMITS)
        return await work(tx)
      })
    } catch (error) {
      if (!begun) throw unreachable(error)
      const state = sqlState(error)
      const again = state === '40001' || state === '40P01'
      if (!again || attempt === ATTEMPTS) throw error
    }
  }
}
