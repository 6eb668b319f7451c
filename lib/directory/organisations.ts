import { randomUUID } from 'node:crypto'
import { and, eq, exists, inArray, not, or, sql } from 'drizzle-orm'
import { contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { webhooks } from '#drizzle/schema/webhooks.ts'
import type { Identity } from '#lib/auth/session.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, violatedConstraint } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

export type IdentityName = Pick<Identity, 'kind' | 'sub'>

export interface Organisation {
  id: string
  name: string
  notifyPayees: boolean
}

/** The name of an organisation until its employer sets one: a sub of the person, shortened in the middle if it is long. */
export function defaultName(sub: string): string {
  return sub.length > 20 ? `${sub.slice(0, 6)}…${sub.slice(-4)}` : sub
}

/** Returns the name that an employer has set, or undefined while the organisation has its default name. */
export async function chosenName(db: Database, organisation: string): Promise<string | undefined> {
  const rows = await db
    .select({ name: organisations.name, sub: identities.sub })
    .from(organisations)
    .leftJoin(identities, eq(identities.organisation, organisations.id))
    .where(eq(organisations.id, organisation))
  const isDefault = rows.some(({ name, sub }) => sub !== null && name === defaultName(sub))
  return isDefault ? undefined : rows[0]?.name
}

/**
 * Returns the organisation of a person, and founds it if there is none. Of concurrent requests one founds it.
 * @param person.first its first identity, after which the organisation is named until its employer sets a name
 */
export async function ensureOrganisation(
  tx: Database,
  { organisation: id, first, actor }: { organisation: string; first: string; actor: Actor },
  now: Date,
  name = defaultName(first),
): Promise<Organisation> {
  const columns = { id: organisations.id, name: organisations.name, notifyPayees: organisations.notifyPayees }
  const row = { id, name, createdAt: now }
  const [founded] = await tx.insert(organisations).values(row).onConflictDoNothing().returning(columns)
  if (founded) {
    await recordAudit(tx, now, { organisation: id, actor, action: 'organisation.founded', subject: id })
    return founded
  }
  const [existing] = await tx.select(columns).from(organisations).where(eq(organisations.id, id))
  if (!existing) throw new Refusal('organisation-dissolved', DISSOLVED)
  return existing
}

/** The condition that an organisation has no batches, and no contractors other than removed ones. */
export const isEmpty = (organisation: string) =>
  and(eq(organisations.id, organisation), eq(organisations.contractorCount, 0), eq(organisations.batchCount, 0))

/**
 * Dissolves the organisation of a person if it is empty, and returns whether the person is without one afterwards. The caller has
 * locked the person's identities. If removed contractors still refer to the organisation, its row stays, and the person leaves it. A concurrent insert waits for
 * the row lock and then fails, because the organisation is gone or its actor no longer belongs to it.
 */
export async function dissolveIfEmpty(
  tx: Database,
  { organisation, actor }: { organisation: string; actor: Actor },
  now: Date,
): Promise<boolean> {
  const isThis = eq(organisations.id, organisation)
  const [found] = await tx
    .select({ isEmpty: sql<boolean>`${isEmpty(organisation)}` })
    .from(organisations)
    .where(isThis)
    .for('update')
  if (!found) return true
  if (!found.isEmpty) return false
  await tx.delete(webhooks).where(eq(webhooks.organisation, organisation))
  const hasRemoved = exists(
    tx.select({ one: sql`1` }).from(contractors).where(eq(contractors.organisation, organisation)),
  )
  const [dissolved] = await tx
    .delete(organisations)
    .where(and(isThis, not(hasRemoved)))
    .returning({ id: organisations.id })
  const entry = { organisation, actor, subject: organisation }
  if (dissolved) await recordAudit(tx, now, { ...entry, action: 'organisation.dissolved' })
  else await tx.update(identities).set({ organisation: randomUUID() }).where(eq(identities.organisation, organisation))
  return true
}

const DISSOLVED = 'your organisation no longer exists: sign in again'

/**
 * Requires that the actor still belongs to the organisation for which it creates a record. The caller has locked the
 * organisation's row, which `dissolveIfEmpty` also locks: either that function sees the new record, or this
 * check sees that the actor has left.
 * @throws Refusal `organisation-dissolved`
 */
export async function requireMember(
  tx: Database,
  { organisation, actor: { kind, sub } }: { organisation: string; actor: Actor },
): Promise<void> {
  const [member] = await tx
    .select({ sub: identities.sub })
    .from(identities)
    .where(and(sql`${identities.kind} = ${kind}`, eq(identities.sub, sub), eq(identities.organisation, organisation)))
  if (!member) throw new Refusal('organisation-dissolved', DISSOLVED)
}

/** Throws `organisation-dissolved` for an insert that failed because its organisation was just deleted, else `error`. */
export function refuseDissolved(error: unknown): never {
  const isDissolved = violatedConstraint(error)?.endsWith('_organisation_organisations_id_fk')
  throw isDissolved ? new Refusal('organisation-dissolved', DISSOLVED) : error
}

/**
 * Locks all identities of the persons that these belong to, so that neither their organisations nor who belongs to them can change.
 * Two such locks of one person may meet in a deadlock, after which the SQL transaction is repeated.
 */
export async function lockPersons(tx: Database, ...names: readonly IdentityName[]): Promise<void> {
  const keyOf = ({ kind, sub }: IdentityName) => `${kind}:${sub}`
  for (const name of names.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    await tx.select({ sub: identities.sub }).from(identities).where(isIdentity(name)).for('update')
  }
  const { kind, sub, organisation } = identities
  const own = tx
    .select({ organisation })
    .from(identities)
    .where(or(...names.map(isIdentity)))
  await tx.select({ sub }).from(identities).where(inArray(organisation, own)).orderBy(kind, sub).for('update')
}

/** The condition for the row of an identity. */
export const isIdentity = ({ kind, sub }: IdentityName) => and(eq(identities.kind, kind), eq(identities.sub, sub))
