import { eq, inArray } from 'drizzle-orm'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'

/** The organisations of the users of jobs, by `kind:sub`. */
export async function findUserOrganisations(
  db: Database,
  users: readonly { sub: string }[],
): Promise<Map<string, { id: string; name: string }>> {
  if (users.length === 0) return new Map()
  const rows = await db
    .select({ kind: identities.kind, sub: identities.sub, id: organisations.id, name: organisations.name })
    .from(identities)
    .innerJoin(organisations, eq(organisations.id, identities.organisation))
    .where(inArray(identities.sub, [...new Set(users.map(({ sub }) => sub))]))
  return new Map(rows.map(({ kind, sub, id, name }) => [`${kind}:${sub}`, { id, name }]))
}
