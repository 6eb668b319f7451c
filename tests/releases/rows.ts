import { readFileSync } from 'node:fs'
import type { PGlite } from '@electric-sql/pglite'
import { readReleased } from '#drizzle/released.ts'

/** The statements that create the tables of a release, on an empty database: its migrations and those of earlier releases. */
export function schemaOf(version: string): string {
  const releases = Object.entries(readReleased())
  const upTo = releases.slice(0, releases.findIndex(([name]) => name === version) + 1)
  const migrations = upTo.flatMap(([, frozen]) => Object.keys(frozen))
  return migrations.map((name) => readFileSync(`drizzle/migrations/${name}.sql`, 'utf8')).join('\n')
}

const TABLES = `SELECT tablename AS "table", (SELECT string_agg(format('%I', column_name), ', ' ORDER BY ordinal_position)
  FROM information_schema.columns WHERE table_schema = 'public' AND table_name = tablename AND is_generated = 'NEVER') AS columns
  FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`
const SEQUENCES = `SELECT format('SELECT setval(%L, %s);', format('%I', sequencename), last_value) AS statement
  FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL ORDER BY sequencename`

/** A statement that runs on a database with the same tables: no trigger fires, and no reference is checked, until all rows are there. */
const FIRST = 'SET session_replication_role = replica;'
const LAST = 'RESET session_replication_role;'

/** The rows of a database as SQL for a PostgreSQL with its tables, and how many rows each table has. */
export async function dumpRows(database: PGlite): Promise<{ sql: string; counts: Record<string, number> }> {
  const statements: string[] = []
  const counts: Record<string, number> = {}
  const { rows: tables } = await database.query<{ table: string; columns: string }>(TABLES)
  for (const { table, columns } of tables) {
    const { rows } = await database.query<{ rows: string; count: number }>(
      `SELECT coalesce(json_agg(row_to_json(each)), '[]')::text AS rows, count(*)::int AS count
        FROM (SELECT ${columns} FROM "${table}") AS each`,
    )
    const [{ rows: json, count } = { rows: '[]', count: 0 }] = rows
    counts[table] = count
    statements.push(
      `INSERT INTO "${table}" (${columns}) OVERRIDING SYSTEM VALUE
        SELECT ${columns} FROM json_populate_recordset(NULL::"${table}", $rows$${json}$rows$);`,
    )
  }
  const { rows: sequences } = await database.query<{ statement: string }>(SEQUENCES)
  const sql = [FIRST, ...statements, ...sequences.map(({ statement }) => statement), LAST].join('\n')
  return { sql, counts }
}
