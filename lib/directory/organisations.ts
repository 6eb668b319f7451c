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

/**
 * The name of an organisation until its employer sets one: its founder's sub, with the middle of a long one cut out.
 */
function defaultName(sub: string): string {
  return sub.length > 20 ? `${sub.slice(0, 6)}…${sub.slice(-4)}` : sub
}

/** The name that its users have given an organisation; undefined while it has its default name. */
export async function givenName(db: Database, organisation: string): Promise<string | undefined> {
  const rows = await db
    .select({ name: organisations.name, sub: identities.sub })
    .from(organisations)
    .leftJoin(identities, eq(identities.organisation, organisations.id))
    .where(eq(organisations.id, organisation))
  const isDefault = rows.some(({ name, sub }) => sub !== null && name === defaultName(sub))
  return isDefault ? undefined : rows[0]?.name
}

/**
 * The organisation of `identity`, founded now if it has none. Of two simultaneous requests one founds it and both get
 * it, because the row of the identity is locked. That row must exist.
 */
export async function foundOrganisation(
  tx: Database,
  identity: IdentityName,
  now: Date,
  name = defaultName(identity.sub),
): Promise<Organisation> {
  await lockIdentities(tx, identity)
  const present = await organisationOf(tx, identity)
  if (present) return present
  const [founded] = await tx
    .insert(organisations)
    .values({ name, createdAt: now })
    .returning({ id: organisations.id, name: organisations.name })
  if (!founded) throw new Error('an insert returned nothing')
  await tx.update(identities).set({ organisation: founded.id }).where(isIdentity(identity))
  const { id } = founded
  await recordAudit(tx, now, { organisation: id, actor: identity, action: 'organisation.founded', subject: id })
  return founded
}

/** The condition that an organisation has neither contractors nor batches. Removed contractors do not count. */
export const isEmpty = (organisation: string) =>
  and(eq(organisations.id, organisation), eq(organisations.contractorCount, 0), eq(organisations.batchCount, 0))

/**
 * Takes `identity` out of its organisation if that has no records, and says whether it did. An organisation without
 * users is deleted, unless removed contractors still refer to it. New records wait for the lock and then find it gone.
 */
export async function leaveEmptyOrganisation(tx: Database, identity: IdentityName, now: Date): Promise<boolean> {
  await lockIdentities(tx, identity)
  const own = await organisationOf(tx, identity)
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
  const told = { organisation: own.id, actor: identity, subject: own.id }
  if (dissolved) await recordAudit(tx, now, { ...told, action: 'organisation.dissolved' })
  return true
}

const DISSOLVED = 'your organisation is not there any more'

/**
 * Requires that the maker of a record still belongs to the record's organisation. The caller has locked the
 * organisation's row, which `leaveEmptyOrganisation` locks too: that one sees the new record, or this check sees that
 * the maker has left.
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

/** Refuses a write that has failed since the caller's organisation was dissolved a moment ago. */
export function refuseDissolved(error: unknown): never {
  const isDissolved = violatedConstraint(error)?.endsWith('_organisation_organisations_id_fk')
  throw isDissolved ? new Refusal('organisation-dissolved', DISSOLVED) : error
}

/** The organisation that an identity belongs to. */
export async function organisationOf(tx: Database, identity: IdentityName): Promise<Organisation | undefined> {
  const [found] = await tx
    .select({ id: organisations.id, name: organisations.name })
    .from(identities)
    .innerJoin(organisations, eq(organisations.id, identities.organisation))
    .where(isIdentity(identity))
  return found
}

/**
 * Locks the rows of identities, so that their organisations do not change meanwhile. The order is always the same, so
 * that no two transactions wait for each other.
 */
export async function lockIdentities(tx: Database, ...several: readonly IdentityName[]): Promise<void> {
  const nameOf = ({ kind, sub }: IdentityName) => `${kind}:${sub}`
  for (const identity of several.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))) {
    await tx.select({ sub: identities.sub }).from(identities).where(isIdentity(identity)).for('update')
  }
}

/** The condition for the row of an identity. */
export const isIdentity = ({ kind, sub }: IdentityName) => and(eq(identities.kind, kind), eq(identities.sub, sub))
