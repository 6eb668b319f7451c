import { eq } from 'drizzle-orm'
import { batches, contractors, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { actorOf } from './audit.ts'
import { nameActor } from './audit-words.ts'

const NAMED = { organisation: organisations, contractor: contractors, batch: batches }

/** The names of the records by which a list is filtered, and of an actor, by filter. */
export type FilterNames = Partial<Record<keyof typeof NAMED | 'actor', string>>

/** Looks up the names of the records that a list is filtered by, including removed ones. */
export async function findFilterNames(db: Database, filters: Record<string, string | undefined>): Promise<FilterNames> {
  const names: FilterNames = {}
  for (const [filter, table] of Object.entries(NAMED) as [keyof typeof NAMED, typeof organisations][]) {
    const id = filters[filter]
    if (!id) continue
    const [row] = await db.select({ name: table.name }).from(table).where(eq(table.id, id))
    if (row) names[filter] = row.name
  }
  const actor = actorOf(filters.actor ?? '')
  if (actor) names.actor = await nameActor(db, actor)
  return names
}
