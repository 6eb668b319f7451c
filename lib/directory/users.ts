import { and, desc, eq, gt, isNull, ne, type SQL, sql } from 'drizzle-orm'
import { type ContractorStatus, contractors, identities, organisations } from '#drizzle/schema/directory.ts'
import { type Identity, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import type { Actor } from '#lib/db/audit-log.ts'
import { builtOnce } from '#lib/db/built-query.ts'
import { type Database, transact, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { foldEmail } from '#lib/text/email.ts'
import { ensureOrganisation, isIdentity, type Organisation } from './organisations.ts'

/** A contractor record that a user is linked to. */
interface LinkedRecord {
  id: string
  organisation: string
  name: string
  status: ContractorStatus
}

/** A signed-in user: an employer if it has an organisation, a contractor if it has linked records, or both. */
export interface User {
  identity: Identity
  organisation: Organisation | undefined
  /** newest first */
  records: LinkedRecord[]
  /** whether an unlinked contractor record has the user's address or email; if not, there is no invite to look for */
  mayBeInvited: boolean
}

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

/**
 * Admits the user who has just signed in, and returns `response` unchanged. Also gives an organisation to a user who
 * has signed in before, if the contractor record or invite that the user had then no longer exists.
 */
export async function admitSession<SignIn extends { session: string }>(
  { settings, database, now }: SignInContext,
  response: SignIn,
): Promise<SignIn> {
  const context = { db: await database(), now: now() }
  const user = await admitUser(context, await verifySession(settings.sessions, response.session, context.now))
  const isContractor = user.records.length > 0
  if (!user.organisation && !isContractor && !(await findPendingInvite(context, user))) {
    await becomeEmployer(context, user)
  }
  return response
}

/** Returns the user with this identity. Records a new user, and gives it an organisation unless it has an invite. */
export async function admitUser({ db, now }: Context, identity: Identity): Promise<User> {
  const existing = await findUser(db, identity)
  if (existing) return existing
  return await transact(db, async (tx) => {
    const row = { kind: identity.kind, sub: identity.sub, createdAt: now, ...providerFields(identity) }
    const [added] = await tx.insert(identities).values(row).onConflictDoNothing().returning({ sub: identities.sub })
    const email = emailOf(identity)
    if (!added && email) await tx.update(identities).set({ email }).where(isIdentity(identity))
    if (added && !(await findPendingInvite({ db: tx, now }, { identity }))) await ensureOrganisation(tx, identity, now)
    const user = await findUser(tx, identity)
    if (!user) throw new Error('the identity was inserted, but no row was found')
    return user
  })
}

/** Returns undefined for a new user, and for a user whose verified email has changed. */
async function findUser(db: Database, identity: Identity): Promise<User | undefined> {
  const { kind, sub } = identity
  const [row] = await userQuery(db).execute({ kind, sub })
  if (!row || !isUpToDate(row, identity)) return undefined
  const organisation = row.id !== null && row.name !== null ? { id: row.id, name: row.name } : undefined
  return { identity, organisation, records: row.records, mayBeInvited: row.mayBeInvited }
}

/**
 * Whether the row of an identity has the verified email of the session.
 * @throws Refusal `provider-mismatch` if the row belongs to another provider: the same sub there is another person
 */
export function isUpToDate(row: { issuer: string | null; email: string | null }, identity: Identity): boolean {
  if (identity.kind === 'idp' && row.issuer !== identity.issuer) {
    throw new Refusal('provider-mismatch')
  }
  const email = emailOf(identity)
  return email === undefined || email === row.email
}

/** Identity, organisation and linked records in one statement, since nearly every request runs it. */
const userQuery = builtOnce((db) => {
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
  const unlinked = (isMatch: SQL) =>
    db
      .select({ one: sql`1` })
      .from(contractors)
      .where(
        and(
          isMatch,
          isNull(contractors.deletedAt),
          isNull(contractors.linkedKind),
          sql`${contractors.status} <> 'inactive'`,
        ),
      )
  return db
    .select({
      issuer: identities.issuer,
      email: identities.email,
      id: organisations.id,
      name: organisations.name,
      records: sql<LinkedRecord[]>`array(${linked})`,
      mayBeInvited: sql<boolean>`case ${identities.kind}
        when 'ledger' then exists (${unlinked(eq(contractors.address, identities.sub))})
        else exists (${unlinked(eq(contractors.emailFolded, identities.email))}) end`,
    })
    .from(identities)
    .leftJoin(organisations, eq(organisations.id, identities.organisation))
    .where(and(eq(identities.kind, sql.placeholder('kind')), eq(identities.sub, sql.placeholder('sub'))))
    .prepare('')
})

interface PendingInvite {
  contractor: string
  version: number
  company: string
}

/**
 * Finds the newest open invite for the user's ledger address or verified email. The contractor may already be `ready`:
 * its address can be registered before the invite is accepted.
 * @param input.except an organisation whose invites are skipped: the user's own
 */
export async function findPendingInvite(
  { db, now }: Context,
  { identity, except = null }: { identity: Identity; except?: string | null | undefined },
): Promise<PendingInvite | undefined> {
  const isWallet = identity.kind === 'ledger'
  const invitee = isWallet ? identity.sub : emailOf(identity)
  if (invitee === undefined) return undefined
  const query = isWallet ? inviteByAddress : inviteByEmail
  const [invite] = await query(db).execute({ invitee, except, now })
  return invite
}

const inviteByAddress = builtOnce((db) => inviteQuery(db, contractors.address).prepare(''))
const inviteByEmail = builtOnce((db) => inviteQuery(db, contractors.emailFolded).prepare(''))

function inviteQuery(db: Database, column: typeof contractors.address | typeof contractors.emailFolded) {
  return db
    .select({ contractor: contractors.id, version: contractors.inviteVersion, company: organisations.name })
    .from(contractors)
    .innerJoin(organisations, eq(organisations.id, contractors.organisation))
    .where(
      and(
        eq(column, sql.placeholder('invitee')),
        ne(contractors.status, 'inactive'),
        isNull(contractors.deletedAt),
        isNull(contractors.linkedKind),
        gt(contractors.inviteExpiresAt, sql.placeholder('now')),
        sql`${contractors.organisation} is distinct from ${sql.placeholder('except')}::uuid`,
      ),
    )
    .orderBy(desc(contractors.createdAt), desc(contractors.sequence))
    .limit(1)
}

/** The verified email of an identity-provider user, case-folded. */
export function emailOf(identity: Identity): string | undefined {
  return identity.kind === 'idp' && identity.email !== undefined ? foldEmail(identity.email) : undefined
}

export const employerRequired = () => new Refusal('employer-required')

/** @throws Refusal `employer-required` if the user has no organisation */
export function requireEmployer({ identity, organisation }: User): Employer {
  if (!organisation) throw employerRequired()
  return { organisation: organisation.id, actor: actorOf(identity) }
}

/**
 * Requires a user who may create records: an employer, or a user who becomes one by creating the first record.
 * @throws Refusal `employer-required` for a linked contractor without an organisation
 */
export function requireFounder(user: User): void {
  if (user.records.length > 0) requireEmployer(user)
}

/**
 * Returns the user as an employer, and creates its organisation if it has none. An unsolicited invite does not prevent
 * this; being linked to a contractor record does.
 * @throws Refusal `employer-required`
 */
export async function becomeEmployer({ db, now }: Context, user: User): Promise<Employer> {
  requireFounder(user)
  if (user.organisation) return requireEmployer(user)
  const { identity } = user
  const { id } = await transactFor(db, identity.sub, (tx) => ensureOrganisation(tx, identity, now))
  return { organisation: id, actor: actorOf(identity) }
}

/** The user as the audit log names it. */
export function actorOf({ kind, sub }: Pick<Identity, 'kind' | 'sub'>): Actor {
  return { kind, sub }
}

function providerFields(identity: Identity) {
  return identity.kind === 'idp' ? { issuer: identity.issuer, email: emailOf(identity) ?? null } : {}
}

/** The ledger accounts that the user has signed in with: first the session's, then the wallets joined to it. */
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
