import path from 'node:path'
import { sql } from 'drizzle-orm'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { pgSchema, text } from 'drizzle-orm/pg-core'
import { sqlState } from './db-failure.ts'
import type { Database } from './db-schema.ts'

// Written out literally so that the files are traced into a standalone build.
export const MIGRATIONS = path.join(process.cwd(), 'drizzle', 'migrations')

/** Any 64-bit number of our own: two instances that start together migrate one after the other. */
const MIGRATION_LOCK = 7_220_130_419_663_201n

/** The database has a migration that this version does not know: a newer version, or another service, made it. */
export class NewerDatabase extends Error {
  constructor() {
    super('the database was migrated by a newer version of this service')
    this.name = 'NewerDatabase'
  }
}

/** The migrator's own record of what it has done. */
const applied = pgSchema('drizzle').table('__drizzle_migrations', { hash: text() })

/**
 * Whether there is nothing to migrate.
 * @throws NewerDatabase
 */
export async function isMigrated(db: Database): Promise<boolean> {
  const ours = new Set(readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ hash }) => hash))
  const known = await readApplied(db)
  if (known.some((hash) => !ours.has(hash))) throw new NewerDatabase()
  return new Set(known).size === ours.size
}

async function readApplied(db: Database): Promise<string[]> {
  try {
    return (await db.select().from(applied)).map(({ hash }) => hash ?? '')
  } catch (error) {
    // Nobody has ever migrated it: there is no such table, or not even its schema.
    if (['42P01', '3F000'].includes(sqlState(error) ?? '')) return []
    throw error
  }
}

/**
 * Runs `migrate`, which takes a connection of `db`, while another one holds a lock. The lock is a transaction's, since
 * those of a session fail behind a pooler. A cold start that finds nothing to do costs one query.
 * @throws NewerDatabase
 */
export async function migrateUnderLock(db: Database, migrate: () => Promise<void>): Promise<void> {
  if (await isMigrated(db)) return
  await db.transaction(async (tx) => {
    // An instance that froze while it migrated must not stop all others for ever. Less than the silence of a statement.
    await tx.execute(sql`SET LOCAL lock_timeout = '15s'`)
    await tx.execute(sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`)
    if (!(await isMigrated(db))) await migrate()
  })
}
