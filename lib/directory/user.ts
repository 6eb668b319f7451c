import { and, desc, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { batches, type ContractorStatus, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Identity, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import { type Database, transact, transactFor } from '#lib/db/connection.ts'
import { preparedOnce } from '#lib/db/prepared.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { isId } from './ids.ts'
import { emailOf, findPendingInvite } from './invites/search.ts'
import { foundOrganisation, isIdentity, type Organisation } from './organisations.ts'

/** A contractor record that a user is linked to. */
interface LinkedRecord {
  id: string
  organisation: string
  name: string
  status: ContractorStatus
}

/**
 * A signed-in user. With an organisation it is an employer, with linked records (newest first) a contractor; or both.
 */
export interface User {
  identity: Identity
  organisation: Organisation | undefined
  records: LinkedRecord[]
  /** whether a transfer of its own organisation is not decided yet */
  hasOpenTransfers: boolean
  /** whether an unlinked contractor record has its address or its email; without one there is no invite to find */
  mayBeInvited: boolean
  /** the progress of the batch that the request names; null if it names none, or none of the user's own */
  batch: Pick<typeof batches.$inferSelect, keyof typeof PROGRESS> | null
}

const { status, settledCount, failedCount, payoutCount } = batches
const PROGRESS = { status, settledCount, failedCount, payoutCount }

/** An employer: the organisation whose records it may change, and the actor that the audit log names. */
export interface Employer {
  organisation: string
  actor: Actor
}

/** The context of a verb of an employer. */
export interface EmployerContext {
  db: Database
  employer: Employer
  now: Date
}

/** The context of a verb of any user. */
export interface UserContext {
  db: Database
  user: User
  now: Date
}

/** The parts of the service that a sign-in needs. */
interface SessionContext {
  settings: { sessions: SessionSettings }
  database(): Promise<Database>
  now(): Date
}

/**
 * Admits the user of a sign-in, and returns the sign-in's answer unchanged. A user who is no contractor, has no open
 * invite and no organisation gets one: the invite or the record of an earlier sign-in may be gone.
 */
export async function admitSession<Answer extends { session: string }>(
  context: SessionContext,
  answer: Answer,
): Promise<Answer> {
  const given = { db: await context.database(), now: context.now() }
  const user = await admitUser(given, await verifySession(context.settings.sessions, answer.session, given.now))
  const isContractor = user.records.length > 0
  if (!user.organisation && !isContractor && !(await findPendingInvite(given, user))) {
    await becomeEmployer({ ...given, user })
  }
  return answer
}

/**
 * The user that `identity` is. A new user is recorded, and gets an organisation unless there is an invite to be a
 * contractor in another.
 * @param named the id that the request's path names; if it is a batch of the user's own, its progress comes along
 */
export async function admitUser(
  { db, now }: Omit<UserContext, 'user'>,
  identity: Identity,
  named?: string,
): Promise<User> {
  const known = await findUser(db, identity, named)
  if (known) return known
  return await transact(db, async (tx) => {
    const row = { kind: identity.kind, sub: identity.sub, createdAt: now, ...providerFields(identity) }
    const [added] = await tx.insert(identities).values(row).onConflictDoNothing().returning({ sub: identities.sub })
    const email = emailOf(identity)
    if (!added && email) await tx.update(identities).set({ email }).where(isIdentity(identity))
    if (added && !(await findPendingInvite({ db: tx, now }, { identity }))) await foundOrganisation(tx, identity, now)
    const user = await findUser(tx, identity)
    if (!user) throw new Error('the identity that was just recorded cannot be found')
    return user
  })
}

/** The user; undefined if it is new, or if its verified email has changed. */
async function findUser(db: Database, identity: Identity, named = ''): Promise<User | undefined> {
  const { kind, sub } = identity
  const [row] = await lookUp(db).execute({ kind, sub, named: isId(named) ? named : null })
  if (!row) return undefined
  // The same sub of another provider is another person, and must not come into this one's records.
  if (identity.kind === 'idp' && row.issuer !== identity.issuer) {
    throw new Refusal('provider-mismatch', 'this user belongs to another identity provider')
  }
  const email = emailOf(identity)
  if (email && email !== row.email) return undefined
  const organisation = row.id !== null && row.name !== null ? { id: row.id, name: row.name } : undefined
  const { records, hasOpenTransfers, mayBeInvited, batch } = row
  return { identity, organisation, records, hasOpenTransfers, mayBeInvited, batch }
}

/**
 * Identity, organisation and linked records, newest first, in one statement, since nearly every request begins with it.
 * Clients poll the progress of a batch most, so it comes along.
 */
const lookUp = preparedOnce((db) => {
  const linked = db
    .select({
      record: sql`json_build_object('id', ${contractors.id}, 'organisation', ${contractors.organisation},
        'name', ${contractors.name}, 'status', ${contractors.status})`,
    })
    .from(contractors)
    .where(
      and(
        eq(contractors.linkedKind, identities.kind),
        eq(contractors.linkedSub, identities.sub),
        isNull(contractors.deletedAt),
      ),
    )
    .orderBy(desc(contractors.createdAt), desc(contractors.sequence))
  const unlinked = (isMeant: SQL) =>
    db
      .select({ one: sql`1` })
      .from(contractors)
      .where(
        and(
          isMeant,
          isNull(contractors.deletedAt),
          isNull(contractors.linkedKind),
          sql`${contractors.status} <> 'inactive'`,
        ),
      )
  // A poll refreshes open transfers. Mostly there are none, and this tells so without a statement of its own.
  const open = db
    .select({ one: sql`1` })
    .from(transfers)
    .where(and(eq(transfers.organisation, identities.organisation), eq(transfers.status, 'open')))
  return db
    .select({
      issuer: identities.issuer,
      email: identities.email,
      id: organisations.id,
      name: organisations.name,
      records: sql<LinkedRecord[]>`array(${linked})`,
      hasOpenTransfers: sql<boolean>`exists (${open})`,
      mayBeInvited: sql<boolean>`case ${identities.kind}
        when 'ledger' then exists (${unlinked(eq(contractors.address, identities.sub))})
        else exists (${unlinked(eq(contractors.emailFolded, identities.email))}) end`,
      batch: PROGRESS,
    })
    .from(identities)
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .leftJoin(batches, and(eq(batches.id, sql.placeholder('named')), eq(batches.organisation, identities.organisation)))
    .where(and(eq(identities.kind, sql.placeholder('kind')), eq(identities.sub, sql.placeholder('sub'))))
    .prepare('look_up_user')
})

/** @throws Refusal `employer-required` for a user without an organisation */
export function requireEmployer({ identity, organisation }: User): Employer {
  if (!organisation) throw new Refusal('employer-required', 'employer role required')
  return { organisation: organisation.id, actor: actorOf(identity) }
}

/**
 * Requires a user who may make records: an employer, or a user who becomes one by the first record.
 * @throws Refusal `employer-required` for a linked contractor without an organisation
 */
export function requireNoMereContractor(user: User): void {
  if (user.records.length > 0) requireEmployer(user)
}

/**
 * The employer that makes a record. A user without a linked record becomes an employer by it, so that an unwanted
 * invite keeps no user from that.
 * @throws Refusal `employer-required`
 */
export async function becomeEmployer({ db, user, now }: UserContext): Promise<Employer> {
  requireNoMereContractor(user)
  if (user.organisation) return requireEmployer(user)
  const { identity } = user
  const founded = await transactFor(db, identity.sub, (tx) => foundOrganisation(tx, identity, now))
  return { organisation: founded.id, actor: actorOf(identity) }
}

/** A user as the audit log names it. */
export function actorOf({ kind, sub }: Pick<Identity, 'kind' | 'sub'>): Actor {
  return { kind, sub }
}

function providerFields(identity: Identity) {
  return identity.kind === 'idp' ? { issuer: identity.issuer, email: emailOf(identity) ?? null } : {}
}

/** The ledger accounts that the user has signed in with: its own comes first, then those joined to its organisation. */
export async function provenAccounts(db: Database, { identity, organisation }: User): Promise<string[]> {
  const own = identity.kind === 'ledger' ? [identity.sub] : []
  if (!organisation) return own
  const joined = await db
    .select({ sub: identities.sub })
    .from(identities)
    .where(and(eq(identities.organisation, organisation.id), eq(identities.kind, 'ledger')))
    .orderBy(identities.createdAt, identities.sub)
  return [...new Set([...own, ...joined.map(({ sub }) => sub)])]
}
