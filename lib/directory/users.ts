import { and, desc, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { type ContractorStatus, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { type Identity, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import { builtOnce } from '#lib/db/built-query.ts'
import { type Database, transact, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { foldEmail } from '#lib/text/email.ts'
import { isOpenInvite } from './contractors/pending-invite.ts'
import { ensureOrganisation, isIdentity, lockPersons, type Organisation } from './organisations.ts'

/** A contractor record that a user is linked to. */
interface LinkedRecord {
  id: string
  organisation: string
  name: string
  status: ContractorStatus
}

/** An identity of a person. */
export interface PersonIdentity {
  kind: Identity['kind']
  sub: string
  /** verified by the provider, case-folded */
  email: string | null
}

/**
 * A signed-in person: an employer with an organisation, or with neither linked records nor an invite that it came for; a contractor
 * with linked records; or both.
 */
export interface User {
  /** the session's */
  identity: Identity
  /** all of the person, the first one first */
  identities: PersonIdentity[]
  /** the id that its organisation has, or will have */
  organisationId: string
  /** undefined before it is founded */
  organisation: Organisation | undefined
  /** newest first */
  records: LinkedRecord[]
  /** whether an unlinked contractor record with an open invite has an address or email of the person */
  isInvited: boolean
  /** whether such a record is older than the person; a later one does not take the employer's role away */
  cameInvited: boolean
}

/** Whether a user has the employer's role. */
export const isEmployer = ({ organisation, records, cameInvited }: User): boolean =>
  organisation !== undefined || (records.length === 0 && !cameInvited)

/** The organisation whose records an employer may change, and the actor for the audit log. */
export interface Employer {
  organisation: string
  actor: Actor
}

/** The part of the directory's context that users need: jobs and grants also look up users. */
export interface Context {
  db: Database
  now: Date
}

interface SignInContext {
  settings: { sessions: SessionSettings }
  database(): Promise<Database>
  now(): Date
}

/** Admits the user who has just signed in, and returns `response` unchanged. */
export async function admitSession<SignIn extends { session: string }>(
  { settings, database, now }: SignInContext,
  response: SignIn,
): Promise<SignIn> {
  const context = { db: await database(), now: now() }
  await admitUser(context, await verifySession(settings.sessions, response.session, context.now))
  return response
}

/** Returns the user with this identity. Records a new one. */
export async function admitUser({ db, now }: Context, identity: Identity): Promise<User> {
  const existing = await findUser(db, identity, now)
  if (existing) return existing
  return await transact(db, async (tx) => {
    const row = { kind: identity.kind, sub: identity.sub, createdAt: now, ...providerFields(identity) }
    await tx.insert(identities).values(row).onConflictDoNothing()
    return await updateUser(tx, identity, now)
  })
}

/** Stores what the provider says about the email of a known identity, and returns its user. */
async function updateUser(tx: Database, identity: Identity, now: Date): Promise<User> {
  if (identity.kind === 'idp' && identity.email !== undefined) {
    const isThis = and(isIdentity(identity), eq(identities.issuer, identity.issuer))
    const email = emailOf(identity) ?? null
    await tx.update(identities).set({ email }).where(isThis)
  }
  const user = await findUser(tx, identity, now)
  if (!user) throw new Error('an identity that was admitted has no row')
  return user
}

/** Returns undefined for a new user, and for a user whose verified email has changed. */
async function findUser(db: Database, identity: Identity, now: Date): Promise<User | undefined> {
  const { kind, sub } = identity
  const [row] = await userQuery(db).execute({ kind, sub, now })
  if (!row || !isUpToDate(row, identity)) return undefined
  const { organisationId, person, records, invitedSince, since, name, notifyPayees } = row
  const organisation = name === null ? undefined : { id: organisationId, name, notifyPayees: notifyPayees === true }
  const isInvited = invitedSince !== null
  const cameInvited = isInvited && invitedSince <= since
  return { identity, identities: person, organisationId, organisation, records, isInvited, cameInvited }
}

/**
 * Whether the row of an identity has the verified email of the session.
 * @throws Refusal `provider-mismatch` if the row belongs to another provider: the same sub there is another person
 */
export function isUpToDate(row: { issuer: string | null; email: string | null }, identity: Identity): boolean {
  if (identity.kind === 'idp' && row.issuer !== identity.issuer) {
    throw new Refusal('provider-mismatch')
  }
  // What the provider no longer verifies proves nothing, for any identity of the person. It may also say nothing about an email.
  const says = identity.kind === 'idp' && identity.email !== undefined
  return !says || (emailOf(identity) ?? null) === row.email
}

/** A person's identities, organisation and linked records in one statement, since nearly every request runs it. */
const userQuery = builtOnce((db) => {
  const own = alias(identities, 'own')
  const isOwn = eq(own.organisation, identities.organisation)
  const person = db
    .select({ identity: sql`json_build_object('kind', ${own.kind}, 'sub', ${own.sub}, 'email', ${own.email})` })
    .from(own)
    .where(isOwn)
    .orderBy(sql`${own.joinedAt} nulls first`, own.createdAt, own.kind, own.sub)
  const linked = db
    .select({
      record: sql`json_build_object('id', ${contractors.id}, 'organisation', ${contractors.organisation},
        'name', ${contractors.name}, 'status', ${contractors.status})`,
    })
    .from(own)
    .innerJoin(contractors, and(eq(contractors.linkedKind, own.kind), eq(contractors.linkedSub, own.sub)))
    .where(and(isOwn, isNull(contractors.deletedAt)))
    .orderBy(desc(contractors.createdAt), desc(contractors.sequence))
  const invited = (isOfKind: SQL, isMatch: SQL) =>
    db
      .select({ at: sql`min(${contractors.createdAt})` })
      .from(own)
      .innerJoin(contractors, isMatch)
      .where(and(isOwn, isOfKind, isOpenInvite(sql.placeholder('now'))))
  const byAddress = invited(eq(own.kind, 'ledger'), eq(contractors.address, own.sub))
  const byEmail = invited(eq(own.kind, 'idp'), eq(contractors.emailFolded, own.email))
  const since = db
    .select({ at: sql`min(${own.createdAt})` })
    .from(own)
    .where(isOwn)
  return db
    .select({
      issuer: identities.issuer,
      email: identities.email,
      organisationId: identities.organisation,
      name: organisations.name,
      notifyPayees: organisations.notifyPayees,
      person: sql<PersonIdentity[]>`array(${person})`,
      records: sql<LinkedRecord[]>`array(${linked})`,
      invitedSince: sql<Date | null>`least((${byAddress}), (${byEmail}))`.mapWith(contractors.createdAt),
      since: sql`(${since})`.mapWith(own.createdAt),
    })
    .from(identities)
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .where(and(eq(identities.kind, sql.placeholder('kind')), eq(identities.sub, sql.placeholder('sub'))))
    .prepare('')
})

/** The verified email of an identity-provider user, case-folded. */
export function emailOf(identity: Identity): string | undefined {
  return identity.kind === 'idp' && identity.email ? foldEmail(identity.email) : undefined
}

const employerRequired = () => new Refusal('employer-required')

/** @throws Refusal `employer-required` if the user does not have the employer's role */
export function requireEmployer(user: User): Employer {
  if (!isEmployer(user)) throw employerRequired()
  return { organisation: user.organisationId, actor: actorOf(user.identity) }
}

/**
 * Requires a user who may create records: an employer, or a user who becomes one by creating the first record.
 * @throws Refusal `employer-required` for a linked contractor without an organisation
 */
export function requireFounder(user: User): void {
  if (user.records.length > 0) requireEmployer(user)
}

/**
 * Returns the user as an employer, and founds its organisation if it has none. An unsolicited invite does not prevent
 * this; being linked to a contractor record does, also since the user was looked up.
 * @throws Refusal `employer-required`
 */
export async function becomeEmployer({ db, now }: Context, user: User): Promise<Employer> {
  requireFounder(user)
  const actor = actorOf(user.identity)
  if (user.organisation) return { organisation: user.organisationId, actor }
  return await transactFor(db, user.organisationId, async (tx) => {
    const present = await lockUser(tx, user, now)
    requireFounder(present)
    const { id } = await ensureOrganisation(tx, founderOf(present), now)
    return { organisation: id, actor }
  })
}

/** What an organisation is founded with. */
export const founderOf = (user: User) => ({
  organisation: user.organisationId,
  first: firstOf(user),
  actor: actorOf(user.identity),
})

/** Locks the identities of a user's person, and returns the user as it is now: a request may have taken long to arrive. */
export async function lockUser(tx: Database, { identity }: Pick<User, 'identity'>, now: Date): Promise<User> {
  await lockPersons(tx, identity)
  // Another session may have stored another email in the meantime.
  return (await findUser(tx, identity, now)) ?? (await updateUser(tx, identity, now))
}

/** The sub of a person's first identity. */
export const firstOf = ({ identity, identities }: User): string => identities[0]?.sub ?? identity.sub

/** The user as the audit log names it. */
export function actorOf({ kind, sub }: Pick<Identity, 'kind' | 'sub'>): Actor {
  return { kind, sub }
}

function providerFields(identity: Identity) {
  return identity.kind === 'idp' ? { issuer: identity.issuer, email: emailOf(identity) ?? null } : {}
}

/** The ledger accounts that the person has signed in with: first the session's. */
export function provenAccounts({ identity, identities: own }: User): string[] {
  const isSession = ({ kind, sub }: PersonIdentity) => kind === identity.kind && sub === identity.sub
  const accounts = own.filter(({ kind }) => kind === 'ledger')
  return [...accounts.filter(isSession), ...accounts.filter((each) => !isSession(each))].map(({ sub }) => sub)
}
