import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { max, type SQL, sql } from 'drizzle-orm'
import { type MigrationMeta, readMigrationFiles } from 'drizzle-orm/migrator'
import { bigint, PgDialect, type PgSession, pgTable, text } from 'drizzle-orm/pg-core'
import { contractions } from '#drizzle/schema/contractions.ts'
import { log } from '#lib/observability/log.ts'
import { sqlState } from './errors.ts'
import { type Database, READ_COMMITTED } from './schema.ts'

/**
 * The folder of the migrations, and the table that records the applied ones. The table isn't drizzle's default: if
 * another program shared the database, its rows would look like those of another version of this service.
 */
export const MIGRATIONS = {
  // Written out literally so that the files are traced into a standalone build.
  migrationsFolder: path.join(process.cwd(), 'drizzle', 'migrations'),
  migrationsSchema: 'public',
  migrationsTable: 'confidential_payroll_migrations',
}
/**
 * The migrations of this version, oldest first, in either layout of drizzle-kit: listed in meta/_journal.json (0.31), or one
 * folder each (1.0), which begins with its time. A migration keeps its digest when `drizzle-kit up` moves it to a folder.
 */
export function readMigrations(folder = MIGRATIONS.migrationsFolder): MigrationMeta[] {
  const journal = path.join(folder, 'meta', '_journal.json')
  const listed = existsSync(/* turbopackIgnore: true */ journal)
    ? readMigrationFiles({ ...MIGRATIONS, migrationsFolder: folder })
    : []
  const separate = readdirSync(/* turbopackIgnore: true */ folder).flatMap((name): MigrationMeta[] => {
    const [, ...time] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)_/.exec(name) ?? []
    const [year = 0, month = 0, ...rest] = time.map(Number)
    if (time.length === 0) return []
    const file = path.join(folder, name, 'migration.sql')
    const text = readFileSync(/* turbopackIgnore: true */ file, 'utf8')
    const hash = createHash('sha256').update(text).digest('hex')
    const folderMillis = Date.UTC(year, month - 1, ...rest)
    return [{ sql: text.split('--> statement-breakpoint'), bps: true, folderMillis, hash }]
  })
  return [...listed, ...separate].sort((one, other) => one.folderMillis - other.folderMillis)
}

const applied = pgTable(MIGRATIONS.migrationsTable, {
  hash: text().notNull(),
  createdAt: bigint('created_at', { mode: 'number' }),
})

/** The advisory lock of migrations: two instances that start together take turns. */
const MIGRATION_LOCK = 7_220_130_419_663_201n

/** Tables of no release, as of a development version before 1.0.0. */
const UNKNOWN_SCHEMA =
  'this database has tables that no release of this service has made: name an empty database (DATABASE_URL), or for an ' +
  'embedded one another folder (DATA_DIR). See docs/releases.md'
const NEWER_SCHEMA =
  'a newer version has migrated this database, and this version can no longer use it: start the newer version, or ' +
  'restore a backup from before the upgrade. See docs/releases.md'

const SKIPPED =
  'a migration of this version is older than one that another version has applied to this database, and cannot follow it: ' +
  'start the newer version. See docs/releases.md'

/** This version can neither use the database's schema nor migrate it. The message says what to do. */
export class OtherSchema extends Error {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, options)
    this.name = 'OtherSchema'
  }
}

/** SQLSTATEs of a CREATE whose schema, table or type already exists. */
const DUPLICATES = ['42P06', '42P07', '42710']

/** The migrations that the database has recorded: none if it was never migrated. */
async function readApplied(db: Database) {
  return await db
    .select()
    .from(applied)
    .catch((error: unknown) => {
      // A database that was never migrated has no such table, or not even a schema for it.
      if (['42P01', '3F000'].includes(sqlState(error) ?? '')) return []
      throw error
    })
}

/**
 * Whether every migration of this version is applied. A newer version may have applied more: additions do not affect
 * older versions, and a migration that removes something records in `contractions` which versions can no longer run.
 * @throws OtherSchema
 */
export async function isMigrated(db: Database): Promise<boolean> {
  const migrations = readMigrations()
  const recorded = await readApplied(db)
  const last = migrations.at(-1)?.folderMillis ?? 0
  const foreign = recorded.filter(({ hash }) => !migrations.some((migration) => migration.hash === hash))
  const isComplete = migrations.every(({ hash }) => recorded.some((row) => row.hash === hash))
  if (foreign.length === 0) return isComplete
  if (!isComplete || foreign.some(({ createdAt }) => createdAt === null || createdAt <= last)) {
    throw new OtherSchema(UNKNOWN_SCHEMA)
  }
  const [{ least } = { least: 0 }] = await db.select({ least: max(contractions.migrations) }).from(contractions)
  if (least !== null && least > migrations.length) throw new OtherSchema(NEWER_SCHEMA)
  return true
}

/**
 * Applies the missing migrations in one transaction: all of them or none.
 * @throws OtherSchema if tables exist without a record of their migrations; any other error of a statement
 */
export async function migrate(db: Database): Promise<void> {
  let failure: unknown
  const applying = db.transaction(
    (tx) =>
      applyMissing(tx).catch((error: unknown) => {
        failure = error
        throw error
      }),
    READ_COMMITTED,
  )
  await applying.catch(async (error: unknown) => {
    // On a lost connection the ROLLBACK also fails, with a less useful error.
    const cause = failure ?? error
    const isDuplicate = DUPLICATES.includes(sqlState(cause) ?? '')
    // If the database has recorded migrations, it is the new migration that is at fault.
    if (!isDuplicate || (await readApplied(db)).length > 0) throw cause
    throw new OtherSchema(UNKNOWN_SCHEMA, { cause })
  })
}

/** The lock belongs to the transaction: a pooler does not preserve a session's lock. */
async function applyMissing(tx: Database): Promise<void> {
  // A migration's statements have no timeout. An instance that waits too long for another instance's migration fails, and
  // retries later. If an instance freezes during a migration, the server closes its session, which releases its lock.
  await tx.execute(sql`SELECT set_config('lock_timeout', '15s', true), set_config('statement_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', '60s', true)`)
  await tx.execute(sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`)
  // While a migration waits for a table lock, other instances' statements queue behind it. It gives up before they reach
  // their timeout of 5 s.
  await tx.execute(sql`SELECT set_config('lock_timeout', '4s', true)`)
  await new PgDialect().migrate(readMigrations(), sharedSession(tx), MIGRATIONS)
  // drizzle skips a migration that is older than the last applied one.
  if (!(await isMigrated(tx))) throw new OtherSchema(SKIPPED)
  log('info', 'migrated', { migrations: readMigrations().length })
}

/**
 * The part of a session that drizzle's migrator uses. When it begins a transaction it gets `tx`, the transaction that has
 * the lock.
 */
function sharedSession(tx: Database): PgSession {
  const session = {
    execute: (statement: SQL) => tx.execute(statement),
    all: async (query: SQL) => ((await tx.execute(query)) as unknown as { rows: unknown[] }).rows,
    transaction: (work: (tx: Database) => Promise<void>) => work(tx),
  }
  return session as unknown as PgSession
}
