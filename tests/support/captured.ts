import { once } from 'node:events'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Pool } from 'pg'
import type { Database } from '#lib/db/connection.ts'
import { schema } from '#lib/db/schema.ts'
import { cloneDatabase, type TestDatabase } from './database.ts'

/** A query as drizzle sends it. */
interface CapturedQuery {
  query: string
  params: unknown[]
}

/** A PostgreSQL database whose queries are captured, so that tests can plan them again. */
export interface CapturedDatabase {
  db: Database
  /** the same database, without capturing */
  pool: Pool
  /** Resolves to the queries that `work` sends, in order. */
  capture(work: () => Promise<unknown>): Promise<CapturedQuery[]>
  close(): Promise<void>
}

/** @param database a clone by default; it is dropped at the end */
export async function openCaptured(database?: TestDatabase): Promise<CapturedDatabase> {
  const { url, drop } = database ?? (await cloneDatabase())
  const pool = new Pool({ connectionString: url })
  const ends: Promise<unknown>[] = []
  pool.on('connect', (client) => ends.push(once(client, 'end')))
  const captured: CapturedQuery[] = []
  const logger = { logQuery: (query: string, params: unknown[]) => void captured.push({ query, params }) }
  return {
    db: drizzle(pool, { schema, logger }),
    pool,
    capture: async (work) => {
      captured.length = 0
      await work()
      return captured.slice()
    },
    close: async () => {
      // The pool ends before its connections: dropping the database would break them, with an unhandled error.
      await pool.end()
      await Promise.all(ends)
      await drop()
    },
  }
}
