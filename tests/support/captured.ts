import { once } from 'node:events'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Pool } from 'pg'
import type { Database } from '#lib/db/connection.ts'
import { schema } from '#lib/db/schema.ts'
import { cloneDatabase } from './database.ts'

/** A query as drizzle sends it. */
interface CapturedQuery {
  query: string
  params: unknown[]
}

/** A PostgreSQL whose queries are written down, to be planned again. */
export interface CapturedDatabase {
  db: Database
  /** the same database, unobserved */
  pool: Pool
  /** the queries that `work` makes, in their order */
  capture(work: () => Promise<unknown>): Promise<CapturedQuery[]>
  close(): Promise<void>
}

export async function openCaptured(): Promise<CapturedDatabase> {
  const clone = await cloneDatabase()
  const pool = new Pool({ connectionString: clone.url })
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
      // The pool ends before its connections do: the drop would cut them off, and the error would have no handler.
      await pool.end()
      await Promise.all(ends)
      await clone.drop()
    },
  }
}
