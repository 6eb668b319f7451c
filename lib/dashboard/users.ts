import { eq, inArray } from 'drizzle-orm'
import { identities, organisations } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Attention, OrganisationUser } from './attention.ts'

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

/** Finds the organisations of the jobs' users, or the users themselves if they have none. */
export async function findUsersOf(
  db: Database,
  jobs: readonly { sub: string }[],
): Promise<(job: { kind: string; sub: string }) => Pick<Attention, 'organisation' | 'users'>> {
  const { kind, sub, email } = identities
  const organisation = { id: organisations.id, name: organisations.name }
  const subs = [...new Set(jobs.map((job) => job.sub))]
  const rows =
    subs.length === 0
      ? []
      : await db
          .select({ kind, sub, email, organisation })
          .from(identities)
          .leftJoin(organisations, eq(organisations.id, identities.organisation))
          .where(inArray(sub, subs))
  const found = new Map(rows.map((row) => [`${row.kind}:${row.sub}`, row]))
  return (job) => {
    const user = found.get(`${job.kind}:${job.sub}`)
    return user?.organisation
      ? { organisation: user.organisation }
      : { users: [{ sub: job.sub, email: user?.email ?? null }] }
  }
}
