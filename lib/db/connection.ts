import { PGlite } from '@electric-sql/pglite'
import { sql } from 'drizzle-orm'
import { describeFailure, log } from '#lib/observability/log.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { inLine, type Line, openLine } from '#lib/turns/line.ts'
import { type Connection, connectPg, connectPglite, connectVercel, isPooledNeon } from './drivers.ts'
import { sqlState, unreachable } from './errors.ts'
import { limitsOf } from './pool.ts'
import { type Database, READ_COMMITTED } from './schema.ts'

export { databaseFailure, isUnreachable, sqlState, violatedConstraint } from './errors.ts'
export type { Database } from './schema.ts'

/** Access to the database: connects and migrates on first use, and again after a failure. */
export interface Store {
  /** @throws Refusal `unavailable` while the database cannot be reached, or has the schema of another version */
  database(): Promise<Database>
  close(): Promise<void>
}

/**
 * The location of the database: a folder for the embedded PGlite (null: in memory), or the URL of a PostgreSQL. The host
 * of the URL selects the driver. `webSocketProxy` (host:port) replaces Neon's proxy for a PostgreSQL on localhost.
 * `connections` is the maximum that this process opens; a migration uses one more. `silenceMs` is the timeout of a
 * statement; migrations have a separate limit.
 */
export type StoreLocation =
  | { directory: string | null }
  | { url: string; connections?: number; webSocketProxy?: string; silenceMs?: number }

/** How many connections a process opens unless `connections` says otherwise. */
const CONNECTIONS = 10

/**
 * Longer than the limits (pool.ts) that the server puts on a transaction, so that the server ends it first and reports the
 * reason.
 */
const SILENCE_MS = 20_000

export function openStore(location: StoreLocation): Store {
  const patience = 'directory' in location ? undefined : (location.silenceMs ?? SILENCE_MS)
  let connected: Promise<Connection> | undefined
  const begin = () => {
    const began = performance.now()
    const beginning = connect(location)
    beginning.catch((error: unknown) => {
      // A connection that fails late must not clear a newer one.
      if (connected === beginning) connected = undefined
      // Its callers have already given up, so the failure is logged.
      const isLate = patience !== undefined && performance.now() - began >= patience
      if (isLate) log('error', 'migration', { failure: describeFailure(error) })
    })
    return beginning
  }
  return {
    database: async () => {
      connected ??= begin()
      try {
        return (await inTime(connected, patience)).database
      } catch (cause) {
        throw unreachable(cause)
      }
    },
    close: async () => {
      const open = await connected?.catch(() => undefined)
      await open?.close()
    },
  }
}

/**
 * Migrates the database, without a time limit.
 * @throws OtherSchema, and the errors of the driver
 */
export async function migrateStore(location: StoreLocation): Promise<void> {
  const { close } = await connect(location)
  await close()
}

async function connect(location: StoreLocation): Promise<Connection> {
  const connection = await connectTo(location)
  const connections = 'directory' in location ? 1 : (location.connections ?? CONNECTIONS)
  transactionLines.set(connection.database, openLine({ atOnce: Math.ceil(connections / 2), perOwner: 1 }))
  return connection
}

function connectTo(location: StoreLocation): Promise<Connection> {
  if ('directory' in location) return connectPglite(location.directory)
  const { url, connections = CONNECTIONS, webSocketProxy, silenceMs = SILENCE_MS } = location
  const server = { url, connections, webSocketProxy, silenceMs }
  return webSocketProxy !== undefined || isPooledNeon(url) ? connectVercel(server) : connectPg(server)
}

/** A migration may take long. After `patience` its callers get an error, and it continues in the background. */
async function inTime(connecting: Promise<Connection>, patience: number | undefined): Promise<Connection> {
  if (patience === undefined) return await connecting
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('it is being migrated, or does not respond')), patience)
  return await Promise.race([connecting, late.promise]).finally(() => clearTimeout(timer))
}

const ATTEMPTS = 3

const transactionLines = perProcess('transactions', () => new WeakMap<Database, Line>())

/**
 * Runs `work` in one SQL transaction, and retries it after a deadlock or a serialisation failure. Use only `tx` inside:
 * PGlite has one connection, and waiting for another would deadlock. A transaction that waits for a row lock occupies a
 * connection. Transactions therefore get at most half of the connections, which leaves the rest for reads.
 * @throws Refusal `unavailable` if the transaction can't begin
 */
export async function transact<Result>(db: Database, work: (tx: Database) => Promise<Result>): Promise<Result> {
  return await transactFor(db, Symbol('one transaction'), work)
}

/**
 * `transact` for transactions that would wait for each other's locks: those of one `owner` run one at a time, and wait
 * before they take a connection.
 * @param owner whose records they write: an organisation, founded or not
 */
export async function transactFor<Result>(
  db: Database,
  owner: string | symbol,
  work: (tx: Database) => Promise<Result>,
): Promise<Result> {
  const line = transactionLines.get(db)
  return line ? await inLine(line, owner, () => attempt(db, work)) : await attempt(db, work)
}

/** PGlite has no timeouts. */
const LIMITS = sql.raw(limitsOf('10s'))
const isEmbedded = (db: Database) => '$client' in db && db.$client instanceof PGlite

async function attempt<Result>(db: Database, work: (tx: Database) => Promise<Result>): Promise<Result> {
  for (let time = 1; ; time += 1) {
    let hasBegun = false
    try {
      return await db.transaction(async (tx) => {
        hasBegun = true
        if (!isEmbedded(db)) await tx.execute(LIMITS)
        return await work(tx)
      }, READ_COMMITTED)
    } catch (error) {
      if (!hasBegun) throw unreachable(error)
      const state = sqlState(error)
      const again = state === '40001' || state === '40P01'
      if (!again || time === ATTEMPTS) throw error
    }
  }
}
