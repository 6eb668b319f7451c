import { integer, pgTable } from 'drizzle-orm/pg-core'

/**
 * Migrations that removed something which older versions use. A version that knows fewer migrations than one of these
 * rows says refuses to run on the database (lib/db/migration.ts); any other older version runs beside newer ones.
 */
export const contractions = pgTable('contractions', {
  /** how many migrations a version must know, at least */
  migrations: integer('migrations').primaryKey(),
})
