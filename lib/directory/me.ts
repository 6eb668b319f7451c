import { eq } from 'drizzle-orm'
import { z } from 'zod'
import { CONTRACTOR_STATUSES, IDENTITY_KINDS, identities, organisations } from '#drizzle/schema/directory.ts'
import { type Session, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr, plainText } from '#lib/text/plain-text.ts'
import type { InviteContext } from './invites/invites.ts'
import { findPendingInvite } from './invites/search.ts'
import { inviteToken } from './invites/token.ts'
import {
  foundOrganisation,
  isEmpty,
  isIdentity,
  leaveEmptyOrganisation,
  lockIdentities,
  organisationOf,
} from './organisations.ts'
import { actorOf, admitUser, type User, type UserContext } from './user.ts'

/** The body of PATCH /me. */
export const meChanges = z.object({ orgName: plainText('orgName', 200) })

/** The user, with all that an application needs to choose between onboarding, employer and contractor. */
export const meShape = z.object({
  sub: z.string(),
  kind: z.enum(IDENTITY_KINDS),
  roles: z.array(z.enum(['employer', 'contractor'])),
  needsOnboarding: z.boolean().meta({ description: 'whether something is left to do before being paid' }),
  employer: z.object({ orgId: z.string(), orgName: z.string() }).optional(),
  contractor: z.object({ id: z.string(), name: z.string(), status: z.enum(CONTRACTOR_STATUSES) }).optional(),
  invite: z
    .object({ company: z.string(), role: z.literal('contractor'), token: z.string() })
    .optional()
    .meta({ description: 'an invite for this user, to be accepted with its token' }),
})
export type Me = z.output<typeof meShape>

/** Describes the user. Of several contractor records it shows the newest. */
export async function describeMe(context: UserContext & InviteContext): Promise<Me> {
  const { db, user, settings } = context
  const { identity, organisation } = user
  const [record] = user.records
  const invite = user.mayBeInvited
    ? await findPendingInvite(context, { identity, without: organisation?.id })
    : undefined
  const hasRecords = invite && organisation && (await db.$count(organisations, isEmpty(organisation.id))) === 0
  const isOnTheWay = record?.status === 'invited' || record?.status === 'onboarding'
  return {
    sub: identity.sub,
    kind: identity.kind,
    roles: [...(organisation ? (['employer'] as const) : []), ...(record ? (['contractor'] as const) : [])],
    needsOnboarding: isOnTheWay || (invite !== undefined && !hasRecords),
    ...(organisation && { employer: { orgId: organisation.id, orgName: organisation.name } }),
    ...(record && { contractor: { id: record.id, name: record.name, status: record.status } }),
    ...(invite && {
      invite: { company: invite.company, role: 'contractor', token: inviteToken(settings.invites.secret, invite) },
    }),
  }
}

/** Renames the user's organisation, or founds one with that name. */
export async function nameOwnOrganisation(context: UserContext, name: string): Promise<User> {
  const { db, user, now } = context
  const { identity } = user
  await transactFor(db, user.organisation?.id ?? identity.sub, async (tx) => {
    const { id: organisation, name: before } = await foundOrganisation(tx, identity, now, name)
    if (before === name) return
    await tx.update(organisations).set({ name }).where(eq(organisations.id, organisation))
    const actor = actorOf(identity)
    await recordAudit(tx, now, { organisation, actor, action: 'organisation.named', subject: organisation })
  })
  return await admitUser(context, identity)
}

const INVALID = 'session must be a valid session'

/** The body of POST /me/identities: a session token of the same person's other identity. */
export const joinedIdentity = z.object({
  session: z
    .string({ error: absentOr('session', 'must be a valid session') })
    .min(1, INVALID)
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
 * Brings a second identity of the same person, proved by a session of it, into the user's organisation. The call may be
 * repeated: an identity that has joined already stays. A contractor without an organisation founds one by this, since a
 * contractor who signed in by email could not prove an account otherwise.
 * @throws Refusal `organisation-in-use` when the other identity's organisation has records
 */
export async function joinIdentity(context: UserContext, joined: Session): Promise<User> {
  const { db, user, now } = context
  const other = await admitUser(context, joined)
  const { kind, sub } = other.identity
  await transactFor(db, user.organisation?.id ?? user.identity.sub, async (tx) => {
    await lockIdentities(tx, user.identity, other.identity)
    const organisation = await foundOrganisation(tx, user.identity, now)
    if ((await organisationOf(tx, other.identity))?.id === organisation.id) return
    if (!(await leaveEmptyOrganisation(tx, other.identity, now))) {
      throw new Refusal('organisation-in-use', "the other session's organisation has records of its own")
    }
    await tx.update(identities).set({ organisation: organisation.id }).where(isIdentity(other.identity))
    await recordAudit(tx, now, {
      organisation: organisation.id,
      actor: actorOf(user.identity),
      action: 'identity.joined',
      subject: `${kind}:${sub}`,
    })
  })
  return await admitUser(context, user.identity)
}
