import { AsyncLocalStorage } from 'node:async_hooks'
import { type SQL, sql } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import { Pool } from 'pg'
import { perProcess } from '#lib/observability/per-process.ts'
import type { Database } from './schema.ts'

const ofTransaction = perProcess('last statements', () => new AsyncLocalStorage<SQL[]>())

/**
 * Runs a statement at the end of the transaction in progress, for rows that every transfer changes: their locks are then
 * held only while the transaction commits, and not while others wait for round trips. Over `pg` it is sent in one message
 * with the COMMIT (pool.ts). It returns nothing, so it must fail on the server, with a CHECK or a raising function, if
 * the transaction may not commit. The error is then that of the transaction.
 */
export async function runLast(tx: Database, statement: SQL): Promise<void> {
  const statements = ofTransaction.getStore()
  if (statements) statements.push(statement)
  else await tx.execute(statement)
}

/**
 * Runs one transaction of `db` with its last statements.
 * @param run gets the function that the transaction calls after everything else
 */
export function withLastStatements<Result>(
  db: Database,
  run: (finish: (tx: Database) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const statements: SQL[] = []
  const isSentWithCommit = '$client' in db && db.$client instanceof Pool
  return ofTransaction.run(statements, () =>
    run(async (tx) => {
      if (isSentWithCommit) return
      for (const statement of statements.splice(0)) await tx.execute(statement)
    }),
  )
}

const dialect = new PgDialect()

/** The text of the last statements of the transaction in progress, each with a semicolon. They are no longer pending then. */
export function takeLastStatements(): string {
  const statements = ofTransaction.getStore()?.splice(0) ?? []
  // One message with several statements has no parameters: their values are written into the text, and drizzle can't write
  // a bigint.
  return statements.map((statement) => `${dialect.sqlToQuery(sql`${statement}`.inlineParams()).sql}; `).join('')
}
