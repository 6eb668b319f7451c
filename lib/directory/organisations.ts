import { and, eq, notExists, sql } from 'drizzle-orm'
import { contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import type { Identity } from '#lib/auth/session.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, violatedConstraint } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

type IdentityName = Pick<Identity, 'kind' | 'sub'>

export interface Organisation {
  id: string
  name: string
}

/** The name of an organisation until its employer sets one: the founder's sub, shortened in the middle if it is long. */
function defaultName(sub: string): string {
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
 * Returns the organisation of `identity`, and creates it if there is none. Locks the identity's row, which must exist,
 * so two concurrent requests get the same organisation.
 */
export async function ensureOrganisation(
  tx: Database,
  identity: IdentityName,
  now: Date,
  name = defaultName(identity.sub),
): Promise<Organisation> {
  await lockIdentities(tx, identity)
  const existing = await findOrganisation(tx, identity)
  if (existing) return existing
  const [organisation] = await tx
    .insert(organisations)
    .values({ name, createdAt: now })
    .returning({ id: organisations.id, name: organisations.name })
  if (!organisation) throw new Error('the insert returned no row')
  await tx.update(identities).set({ organisation: organisation.id }).where(isIdentity(identity))
  const { id } = organisation
  await recordAudit(tx, now, { organisation: id, actor: identity, action: 'organisation.founded', subject: id })
  return organisation
}

/** The condition that an organisation has no batches, and no contractors other than removed ones. */
export const isEmpty = (organisation: string) =>
  and(eq(organisations.id, organisation), eq(organisations.contractorCount, 0), eq(organisations.batchCount, 0))

/**
 * Removes `identity` from its organisation if that is empty. Returns whether the identity now has none. Deletes an
 * organisation without users, unless removed contractors still refer to it. A concurrent insert waits for the row lock
 * and then fails, because the organisation is gone.
 */
export async function leaveEmptyOrganisation(tx: Database, identity: IdentityName, now: Date): Promise<boolean> {
  await lockIdentities(tx, identity)
  const own = await findOrganisation(tx, identity)
  if (!own) return true
  const [empty] = await tx.select({ id: organisations.id }).from(organisations).where(isEmpty(own.id)).for('update')
  if (!empty) return false
  await tx.update(identities).set({ organisation: null }).where(isIdentity(identity))
  const [dissolved] = await tx
    .delete(organisations)
    .where(
      and(
        eq(organisations.id, own.id),
        notExists(tx.select({ one: sql`1` }).from(identities).where(eq(identities.organisation, own.id))),
        notExists(tx.select({ one: sql`1` }).from(contractors).where(eq(contractors.organisation, own.id))),
      ),
    )
    .returning({ id: organisations.id })
  const entry = { organisation: own.id, actor: identity, subject: own.id }
  if (dissolved) await recordAudit(tx, now, { ...entry, action: 'organisation.dissolved' })
  return true
}

const DISSOLVED = 'your organisation no longer exists: sign in again'

/**
 * Requires that the actor still belongs to the organisation for which it creates a record. The caller has locked the
 * organisation's row, which `leaveEmptyOrganisation` also locks: either that function sees the new record, or this
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

export async function findOrganisation(tx: Database, identity: IdentityName): Promise<Organisation | undefined> {
  const [organisation] = await tx
    .select({ id: organisations.id, name: organisations.name })
    .from(identities)
    .innerJoin(organisations, eq(organisations.id, identities.organisation))
    .where(isIdentity(identity))
  return organisation
}

/**
 * Locks the rows of identities, so that their organisations cannot change. Always locks in the same order, to avoid
 * deadlocks.
 */
export async function lockIdentities(tx: Database, ...names: readonly IdentityName[]): Promise<void> {
  const keyOf = ({ kind, sub }: IdentityName) => `${kind}:${sub}`
  for (const name of names.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    await tx.select({ sub: identities.sub }).from(identities).where(isIdentity(name)).for('update')
  }
}

/** The condition for the row of an identity. */
export const isIdentity = ({ kind, sub }: IdentityName) => and(eq(identities.kind, kind), eq(identities.sub, sub))
