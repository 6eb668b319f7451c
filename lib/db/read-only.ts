import { PGlite } from '@electric-sql/pglite'
import { VercelPool } from '@vercel/postgres'
import type { Logger } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzleVercel } from 'drizzle-orm/vercel-postgres'
import { Pool } from 'pg'
import { perProcess } from '#lib/observability/per-process.ts'
import { requireClient } from '#lib/turns/response.ts'
import { limitsOf } from './pool.ts'
import { type Database, schema } from './schema.ts'

const readers = perProcess('read-only databases', () => new WeakMap<Database, Database>())

/**
 * The same database for lists, searches, files and metrics: each statement runs in a read-only transaction, which
 * PostgreSQL itself ends after 5 s, and none begins for a client that has left. PGlite has no timeouts
 * and no such transactions, and a transaction reads in its own.
 */
export function readOnly(db: Database): Database {
  const reader = readers.get(db) ?? openReader(db)
  readers.set(db, reader)
  return reader
}

function openReader(db: Database): Database {
  const client = '$client' in db ? db.$client : undefined
  const { logger } = db._.session as unknown as { logger: Logger }
  if (client instanceof Pool) return drizzlePg(queryingReadOnly(client), { schema, logger })
  if (client instanceof VercelPool) return drizzleVercel(queryingReadOnly(client), { schema, logger })
  if (client instanceof PGlite) return drizzlePglite(queryingForClient(client), { schema, logger })
  return db
}

/** A client that runs no query for a client of the service that has left. */
function queryingForClient(pglite: PGlite): PGlite {
  const query = async (...args: Parameters<PGlite['query']>) => {
    requireClient()
    return await pglite.query(...args)
  }
  return { query } as unknown as PGlite
}

/** A client that runs each query in a read-only transaction on a connection of the pool. */
function queryingReadOnly<Client extends Pool | VercelPool>(pool: Client): Client {
  const query = async (...args: Parameters<Pool['query']>) => {
    requireClient()
    const connection = await (pool as Pool).connect()
    try {
      requireClient()
      await connection.query(`BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; ${limitsOf('5s')}`)
      const result = await connection.query(...args)
      await connection.query('COMMIT')
      return result
    } catch (error) {
      await connection.query('ROLLBACK').catch(() => undefined)
      throw error
    } finally {
      connection.release()
    }
  }
  return { query } as unknown as Client
}
