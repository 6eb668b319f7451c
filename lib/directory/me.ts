import { eq } from 'drizzle-orm'
import { z } from 'zod'
import { CONTRACTOR_STATUSES, IDENTITY_KINDS, identities, organisations } from '#drizzle/schema/directory.ts'
import { type Session, type SessionSettings, verifySession } from '#lib/auth/session.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { absentOr, plainText } from '#lib/text/plain-text.ts'
import type { UserContext } from './context.ts'
import { inviteToken } from './contractors/invite-token.ts'
import {
  ensureOrganisation,
  findOrganisation,
  isEmpty,
  isIdentity,
  leaveEmptyOrganisation,
  lockIdentities,
} from './organisations.ts'
import { actorOf, admitUser, findPendingInvite, type User } from './users.ts'

/** The body of PATCH /me. */
export const meChanges = z.object({ orgName: plainText(200) })

export const meShape = z.object({
  sub: z.string(),
  kind: z.enum(IDENTITY_KINDS),
  roles: z.array(z.enum(['employer', 'contractor'])),
  needsOnboarding: z.boolean().meta({ description: 'whether the user has a step left before it can be paid' }),
  employer: z.object({ orgId: z.string(), orgName: z.string() }).optional(),
  contractor: z.object({ id: z.string(), name: z.string(), status: z.enum(CONTRACTOR_STATUSES) }).optional(),
  invite: z
    .object({ company: z.string(), role: z.literal('contractor'), token: z.string() })
    .optional()
    .meta({ description: 'an open invite for this user; accept it with its token' }),
})
export type Me = z.output<typeof meShape>

/** Describes the user, its roles and its open invite. Of several contractor records it shows the newest. */
export async function describeMe(context: UserContext): Promise<Me> {
  const { db, user, settings } = context
  const { identity, organisation } = user
  const [record] = user.records
  const invite = user.mayBeInvited
    ? await findPendingInvite(context, { identity, except: organisation?.id })
    : undefined
  const hasRecords = invite && organisation && (await db.$count(organisations, isEmpty(organisation.id))) === 0
  const isWaiting = record?.status === 'invited' || record?.status === 'onboarding'
  return {
    sub: identity.sub,
    kind: identity.kind,
    roles: [...(organisation ? (['employer'] as const) : []), ...(record ? (['contractor'] as const) : [])],
    needsOnboarding: isWaiting || (invite !== undefined && !hasRecords),
    ...(organisation && { employer: { orgId: organisation.id, orgName: organisation.name } }),
    ...(record && { contractor: { id: record.id, name: record.name, status: record.status } }),
    ...(invite && {
      invite: { company: invite.company, role: 'contractor', token: inviteToken(settings.invites.secret, invite) },
    }),
  }
}

/** Renames the user's organisation, or creates one with that name. */
export async function nameOrganisation(context: UserContext, name: string): Promise<User> {
  const { db, user, now } = context
  const { identity } = user
  await transactFor(db, user.organisation?.id ?? identity.sub, async (tx) => {
    const organisation = await ensureOrganisation(tx, identity, now, name)
    if (organisation.name === name) return
    const { id } = organisation
    await tx.update(organisations).set({ name }).where(eq(organisations.id, id))
    const actor = actorOf(identity)
    await recordAudit(tx, now, { organisation: id, actor, action: 'organisation.named', subject: id })
  })
  return await admitUser(context, identity)
}

const INVALID = 'must be a valid session'

/** The body of POST /me/identities. */
export const otherIdentity = z.object({
  session: z
    .string({ error: absentOr(INVALID) })
    .min(1, INVALID)
    .meta({ description: 'a session of the same person’s other identity' }),
})

/** @throws Refusal `session-invalid`, since this session is a field of the body and not the caller's own */
export async function verifyOtherSession(settings: SessionSettings, token: string, now: Date): Promise<Session> {
  try {
    return await verifySession(settings, token, now)
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause
    throw new Refusal('session-invalid', `session ${INVALID}`, { cause })
  }
}

/**
 * Joins another identity of the same person to the user's organisation. Idempotent. A contractor without an
 * organisation gets one: otherwise a contractor who signed in by email could never prove an account.
 * @throws Refusal `organisation-in-use` if the other identity's organisation has records
 */
export async function joinIdentity(context: UserContext, other: Session): Promise<User> {
  const { db, user, now } = context
  const { identity } = await admitUser(context, other)
  await transactFor(db, user.organisation?.id ?? user.identity.sub, async (tx) => {
    await lockIdentities(tx, user.identity, identity)
    const organisation = await ensureOrganisation(tx, user.identity, now)
    if ((await findOrganisation(tx, identity))?.id === organisation.id) return
    if (!(await leaveEmptyOrganisation(tx, identity, now))) {
      throw new Refusal('organisation-in-use')
    }
    await tx.update(identities).set({ organisation: organisation.id }).where(isIdentity(identity))
    await recordAudit(tx, now, {
      organisation: organisation.id,
      actor: actorOf(user.identity),
      action: 'identity.joined',
      subject: `${identity.kind}:${identity.sub}`,
    })
  })
  return await admitUser(context, user.identity)
}
