import { eq } from 'drizzle-orm'
import { batches, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'

const NAMED = { organisation: organisations, contractor: contractors, batch: batches }

/** The names of the records by which a list is filtered, by filter. */
export type FilterNames = Partial<Record<keyof typeof NAMED, string>>

/** Looks up the names of the records that a list is filtered by, including removed ones. */
export async function findFilterNames(db: Database, filters: Record<string, string | undefined>): Promise<FilterNames> {
  const names: FilterNames = {}
  for (const [filter, table] of Object.entries(NAMED) as [keyof typeof NAMED, typeof organisations][]) {
    const id = filters[filter]
    if (!id) continue
    const [row] = await db.select({ name: table.name }).from(table).where(eq(table.id, id))
    if (row) names[filter] = row.name
  }
  return names
}
