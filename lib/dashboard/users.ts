import { eq, inArray } from 'drizzle-orm'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import type { NamedRecord, OrganisationUser } from './attention.ts'

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

/** Finds the organisations of the users of jobs, by `kind:sub`. */
export async function findUserOrganisations(
  db: Database,
  users: readonly { sub: string }[],
): Promise<Map<string, NamedRecord>> {
  if (users.length === 0) return new Map()
  const rows = await db
    .select({ kind: identities.kind, sub: identities.sub, id: organisations.id, name: organisations.name })
    .from(identities)
    .innerJoin(organisations, eq(organisations.id, identities.organisation))
    .where(inArray(identities.sub, [...new Set(users.map(({ sub }) => sub))]))
  return new Map(rows.map(({ kind, sub, id, name }) => [`${kind}:${sub}`, { id, name }]))
}
