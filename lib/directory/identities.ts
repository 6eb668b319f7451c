import { and, eq } from 'drizzle-orm'
import { z } from 'zod'
import { identities } from '#drizzle/schema/directory.ts'
import { type Session, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import { absentOr } from '#lib/text/plain-text.ts'
import {
  defaultName,
  foundOrganisation,
  leaveEmptyOrganisation,
  lockIdentities,
  organisationOf,
} from './organisations.ts'
import { actorOf, admitUser, type User, type UserContext } from './user.ts'

const problem = absentOr('session', 'must be a valid session')

/** The body of POST /me/identities: a session token of the same person's other identity. */
export const joinedIdentity = z.object({
  session: z
    .string({ error: problem })
    .min(1, 'session required')
    .meta({ description: 'a session of the same person’s other identity' }),
})

/**
 * The identity that the session in the body is of.
 * @throws Refusal `session-invalid`
 */
export async function verifyJoined(settings: SessionSettings, token: string, now: Date): Promise<Session> {
  try {
    return await verifySession(settings, token, now)
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause
    // The caller's own session is good; this one is a field of the body.
    throw new Refusal('session-invalid', 'session must be a valid session', { cause })
  }
}

/**
 * Brings a second identity of the same person, proved by a session of it, into the user's organisation. What is there
 * already stays: the call may be repeated. A contractor who has no organisation founds one: without it, who came by email
 * could never prove an account.
 * @throws Refusal `organisation-in-use` when the other identity's organisation has records
 */
export async function joinIdentity({ db, user, now }: UserContext, joined: Session): Promise<User> {
  const other = await admitUser(db, joined, now)
  const { kind, sub } = other.identity
  await transactFor(db, user.organisation?.id ?? user.identity.sub, async (tx) => {
    await lockIdentities(tx, [user.identity, other.identity])
    const organisation = await foundOrganisation(tx, user.identity, defaultName(user.identity.sub), now)
    if ((await organisationOf(tx, other.identity))?.id === organisation.id) return
    if (!(await leaveEmptyOrganisation(tx, other.identity, now))) {
      throw new Refusal('organisation-in-use', "the other session's organisation has records of its own")
    }
    await tx
      .update(identities)
      .set({ organisation: organisation.id })
      .where(and(eq(identities.kind, kind), eq(identities.sub, sub)))
    await recordAudit(tx, now, {
      organisation: organisation.id,
      actor: actorOf(user.identity),
      action: 'identity.joined',
      subject: { kind: 'identity', id: `${kind}:${sub}` },
    })
  })
  return await admitUser(db, user.identity, now)
}

/** The accounts of the ledger that the user has signed in with: its own, first, and those joined to it. */
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
