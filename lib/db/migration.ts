import path from 'node:path'
import { sql } from 'drizzle-orm'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { bigint, pgTable, serial, text } from 'drizzle-orm/pg-core'
import { sqlState } from './errors.ts'
import { type Database, READ_COMMITTED } from './schema.ts'

// Written out literally so that the files are traced into a standalone build.
const MIGRATIONS = path.join(process.cwd(), 'drizzle', 'migrations')

/** Any 64-bit number of our own: two instances that start together migrate one after the other. */
const MIGRATION_LOCK = 7_220_130_419_663_201n

/** The database has a migration that this version does not know: a newer version made it. */
export class NewerDatabase extends Error {
  constructor() {
    super('the database was migrated by a newer version of this service')
    this.name = 'NewerDatabase'
  }
}

/**
 * The migrations that the database has. Of the form of drizzle's, and not its default table: that is anybody's who uses
 * drizzle in the same database, whose migrations would pass for those of a newer version of ours. It stands where our
 * tables stand, and goes when they go.
 */
const applied = pgTable('confidential_payroll_migrations', {
  id: serial().primaryKey(),
  hash: text().notNull(),
  createdAt: bigint('created_at', { mode: 'number' }),
})

/**
 * Whether there is nothing to migrate. It costs one query.
 * @throws NewerDatabase
 */
export async function isMigrated(db: Database): Promise<boolean> {
  try {
    return (await findMissing(db)).length === 0
  } catch (error) {
    // Nobody has ever migrated it: there is no such table, or not even a schema for it.
    if (['42P01', '3F000'].includes(sqlState(error) ?? '')) return false
    throw error
  }
}

async function findMissing(db: Database) {
  const ours = readMigrationFiles({ migrationsFolder: MIGRATIONS })
  const known = new Set((await db.select({ hash: applied.hash }).from(applied)).map(({ hash }) => hash))
  const missing = ours.filter(({ hash }) => !known.has(hash))
  if (known.size + missing.length > ours.length) throw new NewerDatabase()
  return missing
}

/**
 * Applies what is missing in one transaction, all or nothing.
 * @throws NewerDatabase; whatever has made it fail
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
  await applying.catch((error: unknown) => {
    // On a connection that has gone the ROLLBACK fails, too, and says less.
    throw failure ?? error
  })
}

/** Under a lock of the transaction, since those of a session do not hold through a pooler. */
async function applyMissing(tx: Database): Promise<void> {
  // A statement takes the time that it takes. Who waits for another's migration comes back later, and one that froze in the
  // middle of it loses its lock.
  await tx.execute(sql`SELECT set_config('lock_timeout', '15s', true), set_config('statement_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', '60s', true)`)
  await tx.execute(sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`)
  // Whatever comes after a statement that waits for a table's lock waits behind it: not for as long as others' limit.
  await tx.execute(sql`SELECT set_config('lock_timeout', '4s', true)`)
  await tx.execute(sql`CREATE TABLE IF NOT EXISTS ${applied}
    ("id" serial PRIMARY KEY, "hash" text NOT NULL, "created_at" bigint)`)
  await takeOver(tx)
  for (const { sql: statements, hash, folderMillis } of await findMissing(tx)) {
    for (const statement of statements) await tx.execute(sql.raw(statement))
    await tx.insert(applied).values({ hash, createdAt: folderMillis })
  }
}

/**
 * What earlier versions wrote into drizzle's default table, where it may stand among the migrations of others. It is only
 * read: theirs is not ours to change. Without our tables it is about a schema that was dropped since.
 */
async function takeOver(tx: Database): Promise<void> {
  const isReadable = sql`relname = '__drizzle_migrations' AND has_table_privilege(oid, 'SELECT') AND relnamespace =
    (SELECT oid FROM pg_namespace WHERE nspname = 'drizzle' AND has_schema_privilege(oid, 'USAGE'))`
  const hasTables = sql`to_regclass('sponsored_transfers') IS NOT NULL`
  const found = await tx.select({ oid: sql`oid` }).from(sql`pg_class`).where(sql`${isReadable} AND ${hasTables}`)
  if (found.length === 0) return
  const ours = readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ hash }) => hash)
  await tx.execute(sql`INSERT INTO ${applied} ("hash", "created_at")
    SELECT "hash", "created_at" FROM "drizzle"."__drizzle_migrations" AS earlier
    WHERE "hash" IN ${ours} AND NOT EXISTS (SELECT FROM ${applied} WHERE ${applied.hash} = earlier."hash")
    ORDER BY "created_at"`)
}
