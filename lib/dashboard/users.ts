import { inArray } from 'drizzle-orm'
import { identities } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import type { OrganisationUser } from './attention.ts'

/** Finds the users of organisations, by organisation. */
export async function findUsers(db: Database, ids: readonly string[]): Promise<Map<string, OrganisationUser[]>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .select({ organisation: identities.organisation, sub: identities.sub, email: identities.email })
    .from(identities)
    .where(inArray(identities.organisation, [...new Set(ids)]))
    .orderBy(identities.createdAt, identities.sub)
  const grouped = Map.groupBy(rows, ({ organisation }) => organisation ?? '')
  return new Map([...grouped].map(([id, users]) => [id, users.map(({ sub, email }) => ({ sub, email }))]))
}
