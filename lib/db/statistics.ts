import { PGlite } from '@electric-sql/pglite'
import { sql } from 'drizzle-orm'
import type { Database } from './schema.ts'

/**
 * Runs ANALYZE on the tables of a PGlite database that have doubled since the last run, and resolves to their names.
 * PostgreSQL does this automatically. PGlite doesn't, and a plan made for an empty table would scan all of a large one.
 */
export async function analyzeGrownTables(db: Database): Promise<string[]> {
  if (!('$client' in db && db.$client instanceof PGlite)) return []
  // `relpages` is the size at the last ANALYZE.
  const { rows } = (await db.execute(sql`SELECT relname AS name FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
      AND pg_relation_size(oid) > greatest(16, 2 * relpages) * current_setting('block_size')::int
    ORDER BY relname`)) as unknown as { rows: { name: string }[] }
  // One statement each, because PGlite blocks the process while a statement runs.
  for (const { name } of rows) await db.execute(sql`ANALYZE ${sql.identifier(name)}`)
  return rows.map(({ name }) => name)
}
