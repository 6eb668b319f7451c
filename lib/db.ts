import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { DrizzleQueryError, sql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { migrate as migratePg } from 'drizzle-orm/node-postgres/migrator'
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { migrate as migratePglite } from 'drizzle-orm/pglite/migrator'
import { Client, Pool, type PoolClient } from 'pg'
import * as directory from '#drizzle/directory-schema.ts'
import * as relay from '#drizzle/relay-schema.ts'
import * as transfers from '#drizzle/schema.ts'
import { describeFailure, log } from './log.ts'
import { Refusal } from './refusal.ts'

const schema = { ...transfers, ...directory, ...relay }

/** A database or a transaction of it; verbs take either. */
export type Database = PgDatabase<PgQueryResultHKT, typeof schema>

/** The way to the database: connects and migrates at first use, and again after a failure. */
export interface Store {
  /** @throws Refusal `unavailable` while the database cannot be reached */
  database(): Promise<Database>
  close(): Promise<void>
}

/** Where the database is: a folder for the embedded PGlite (null: in memory), or the URL of a PostgreSQL. */
export type StoreLocation = { directory: string | null } | { url: string }

// Written out literally so that the files are traced into a standalone build.
const MIGRATIONS = path.join(process.cwd(), 'drizzle', 'migrations')

/** How long a statement may stay without an answer before its connection is given up. */
const SILENCE_MS = 20_000

/** Any 64-bit number of our own: two instances that start together migrate one after the other. */
const MIGRATION_LOCK = 7_220_130_419_663_201n

export function openStore(location: StoreLocation): Store {
  const connect = 'url' in location ? () => connectPg(location.url) : () => connectPglite(location.directory)
  let connected: Promise<Connection> | undefined
  return {
    database: async () => {
      connected ??= connect()
      try {
        return (await connected).database
      } catch (cause) {
        connected = undefined
        throw unreachable(cause)
      }
    },
    close: async () => {
      const open = await connected?.catch(() => undefined)
      await open?.close()
    },
  }
}

interface Connection {
  database: Database
  close(): Promise<void>
}

async function connectPglite(directory: string | null): Promise<Connection> {
  if (directory !== null) mkdirSync(directory, { recursive: true })
  const client = await PGlite.create(directory ?? 'memory://')
  const database = drizzlePglite(client, { schema })
  await migratePglite(database, { migrationsFolder: MIGRATIONS })
  return { database, close: () => client.close() }
}

async function connectPg(url: string): Promise<Connection> {
  const pool = new Pool({ connectionString: url, max: 10, connectionTimeoutMillis: 10_000, query_timeout: SILENCE_MS })
  // A connection that breaks, idle or in use, is replaced at next use; without listeners it would end the process.
  pool.on('error', logBrokenConnection)
  pool.on('connect', (client) => {
    client.on('error', logBrokenConnection)
    endWhenSilent(client)
  })
  try {
    const database = drizzlePg(pool, { schema })
    await underMigrationLock(url, () => migratePg(database, { migrationsFolder: MIGRATIONS }))
    return { database, close: () => pool.end() }
  } catch (error) {
    await pool.end()
    throw error
  }
}

/**
 * A statement that gets no answer leaves its connection in the middle of something, perhaps of a transaction. Given back
 * to the pool, it would run other people's statements inside that. So it is ended, and the server rolls back.
 */
function endWhenSilent(client: PoolClient): void {
  client.query = new Proxy(client.query, {
    apply: (query, self, args) => {
      const answer: unknown = Reflect.apply(query, self, args)
      if (answer instanceof Promise) {
        answer.catch((error: unknown) => {
          if (sqlState(error) === undefined) void client.end().catch(logBrokenConnection)
        })
      }
      return answer
    },
  })
}

function logBrokenConnection(error: Error): void {
  log('error', 'database connection', { failure: describeFailure(error) })
}

/** Runs `migrate` while a second connection holds a lock in a transaction: session locks fail behind a pooler. */
async function underMigrationLock(url: string, migrate: () => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  client.on('error', logBrokenConnection)
  await client.connect()
  try {
    await client.query('BEGIN')
    // An instance that froze while it migrated must not stop all others for ever.
    await client.query("SET LOCAL lock_timeout = '60s'")
    await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    await migrate()
    await client.query('COMMIT')
  } finally {
    await client.end()
  }
}

/** Runs SQL given as text, for a library that brings its own: one statement with values, any number without. */
export type RunSql = (text: string, values?: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>

/** The way to run SQL as text on the database that `db` is (no transaction of it). */
export function sqlRunner(db: Database): RunSql {
  const client = '$client' in db ? db.$client : undefined
  if (client instanceof PGlite) return (text, values) => runOnPglite(client, text, values)
  if (client instanceof Pool) return async (text, values) => ({ rows: rowsOf(await client.query(text, values)) })
  throw new Error('a transaction has no client of its own')
}

/**
 * PGlite is one connection: a script that fails between its BEGIN and COMMIT, sent as it is, leaves that connection in
 * an aborted transaction for whoever comes next. So the script runs in a transaction of PGlite's own.
 */
async function runOnPglite(client: PGlite, text: string, values?: unknown[]) {
  if (values?.length) return await client.query<Record<string, unknown>>(text, values)
  const script = text.replace(/^\s*BEGIN\s*;/i, '').replace(/\bCOMMIT\s*;?\s*$/i, '')
  const results = await client.transaction((tx) => tx.exec(script))
  return { rows: results.flatMap(({ rows }) => rows) }
}

/** node-postgres answers a script with a result for each of its statements. */
function rowsOf(result: { rows: unknown[] } | { rows: unknown[] }[]): Record<string, unknown>[] {
  const rows = Array.isArray(result) ? result.flatMap((each) => each.rows ?? []) : (result.rows ?? [])
  return rows as Record<string, unknown>[]
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

/** The SQLSTATE of a failed query, if that is what `error` is. */
export function sqlState(error: unknown): string | undefined {
  const cause = error instanceof DrizzleQueryError ? error.cause : error
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  // EPIPE has five letters, too, but no class of SQLSTATE begins with E.
  return typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : undefined
}

/** The name of the constraint that a failed query would have broken. */
export function violatedConstraint(error: unknown): string | undefined {
  const cause = error instanceof DrizzleQueryError ? error.cause : error
  const name = cause instanceof Error && 'constraint' in cause ? cause.constraint : undefined
  return typeof name === 'string' ? name : undefined
}

/**
 * Whether the database could not be reached, as opposed to having refused: SQLSTATE classes 08 (connection),
 * 53 (resources) and 57 (shutdown, statement timeout), a lock or a transaction that took too long (55P03, 25P03), or a
 * query that failed without any state.
 */
export function isUnreachable(error: unknown): boolean {
  const state = sqlState(error)
  return state === undefined ? error instanceof DrizzleQueryError : /^(08|53|57|55P03|25P03)/.test(state)
}

function unreachable(cause: unknown): Refusal {
  return new Refusal('unavailable', 'the database cannot be reached', { cause })
}

/** A failure as the caller may see it: an unreachable database is a refusal, everything else stays what it is. */
export function databaseFailure(error: unknown): unknown {
  return isUnreachable(error) ? unreachable(error) : error
}
