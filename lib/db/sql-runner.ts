import { PGlite } from '@electric-sql/pglite'
import { VercelPool } from '@vercel/postgres'
import { Pool } from 'pg'
import type { Database } from './schema.ts'

/**
 * Runs SQL text, for a library that has its own SQL: one statement with values, or any number of statements without.
 */
type RunSql = (text: string, values?: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>

/** Runs SQL text on the database `db`, which must not be a transaction. */
export function sqlRunner(db: Database): RunSql {
  const client = '$client' in db ? db.$client : undefined
  if (client instanceof PGlite) return (text, values) => runOnPglite(client, text, values)
  if (client instanceof Pool || client instanceof VercelPool) {
    const pool: Pick<Pool, 'query'> = client
    return async (text, values) => ({ rows: rowsOf(await pool.query(text, values)) })
  }
  throw new Error('a transaction has no separate client')
}

/**
 * PGlite is one connection: a script that fails between its BEGIN and COMMIT, sent unchanged, leaves that connection in
 * an aborted transaction, and the next statement fails. PGlite's transaction() avoids that.
 */
async function runOnPglite(client: PGlite, text: string, values?: unknown[]) {
  if (values?.length) return await client.query<Record<string, unknown>>(text, values)
  const script = text.replace(/^\s*BEGIN\s*;/i, '').replace(/\bCOMMIT\s*;?\s*$/i, '')
  const results = await client.transaction((tx) => tx.exec(script))
  return { rows: results.flatMap(({ rows }) => rows) }
}

/** The PostgreSQL drivers return one result for each statement of a script. */
function rowsOf(result: { rows: unknown[] } | { rows: unknown[] }[]): Record<string, unknown>[] {
  const rows = Array.isArray(result) ? result.flatMap((each) => each.rows ?? []) : (result.rows ?? [])
  return rows as Record<string, unknown>[]
}
