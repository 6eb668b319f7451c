import { eq } from 'drizzle-orm'
import { z } from 'zod'
import { CONTRACTOR_STATUSES, IDENTITY_KINDS, organisations } from '#drizzle/schema/directory.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transactFor } from '#lib/db/connection.ts'
import { plainText } from '#lib/text/plain-text.ts'
import type { UserContext } from './context.ts'
import { inviteToken } from './contractors/invite-token.ts'
import { findPendingInvite } from './contractors/pending-invite.ts'
import { defaultName, ensureOrganisation, isEmpty } from './organisations.ts'
import { actorOf, admitUser, firstOf, founderOf, isEmployer, lockUser, type User } from './users.ts'

/** The body of PATCH /me. */
export const meChanges = z
  .object({
    orgName: plainText(200).optional(),
    notifyPayees: z.boolean().optional().meta({
      description: 'whether contractors get a mail when they are paid; off by default. A mail names you, and no amount',
      'x-extension': true,
    }),
  })
  .superRefine(({ orgName, notifyPayees }, context) => {
    if (orgName !== undefined || notifyPayees !== undefined) return
    context.addIssue({ code: 'custom', path: ['orgName'], message: 'required', params: { problem: 'required' } })
  })

export const meShape = z.object({
  sub: z.string(),
  kind: z.enum(IDENTITY_KINDS),
  identities: z.array(z.object({ kind: z.enum(IDENTITY_KINDS), sub: z.string(), email: z.string().optional() })).meta({
    description: 'all identities of this person, the first one first; each of them sees the same',
    'x-extension': true,
  }),
  roles: z.array(z.enum(['employer', 'contractor'])),
  needsOnboarding: z.boolean().meta({ description: 'whether the user has a step left before it can be paid' }),
  employer: z
    .object({
      orgId: z.string(),
      orgName: z.string(),
      notifyPayees: z
        .boolean()
        .optional()
        .meta({ description: 'true if its contractors get a mail when they are paid', 'x-extension': true }),
    })
    .optional(),
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
  const { identity, identities, organisation, organisationId: orgId } = user
  const [record] = user.records
  const invite = user.isInvited ? await findPendingInvite(context, user) : undefined
  const hasRecords = invite && organisation && (await db.$count(organisations, isEmpty(orgId))) === 0
  const isWaiting = record?.status === 'invited' || record?.status === 'onboarding'
  const employer = isEmployer(user) && {
    orgId,
    orgName: organisation?.name ?? defaultName(firstOf(user)),
    ...(organisation?.notifyPayees && { notifyPayees: true }),
  }
  return {
    sub: identity.sub,
    kind: identity.kind,
    identities: identities.map(({ email, ...names }) => ({ ...names, ...(email !== null && { email }) })),
    roles: [...(employer ? (['employer'] as const) : []), ...(record ? (['contractor'] as const) : [])],
    needsOnboarding: isWaiting || (invite !== undefined && !hasRecords),
    ...(employer && { employer }),
    ...(record && { contractor: { id: record.id, name: record.name, status: record.status } }),
    ...(invite && {
      invite: { company: invite.company, role: 'contractor', token: inviteToken(settings.invites.secret, invite) },
    }),
  }
}

/** Changes the user's organisation, or founds one. */
export async function changeOrganisation(context: UserContext, changes: z.output<typeof meChanges>): Promise<User> {
  const { orgName: name, notifyPayees } = changes
  const { db, user, now } = context
  const { identity, organisationId } = user
  const actor = actorOf(identity)
  await transactFor(db, organisationId, async (tx) => {
    const founder = founderOf(await lockUser(tx, user, now))
    const { id, name: present } = await ensureOrganisation(tx, founder, now, name)
    if (notifyPayees !== undefined) await tx.update(organisations).set({ notifyPayees }).where(eq(organisations.id, id))
    if (name === undefined || present === name) return
    await tx.update(organisations).set({ name }).where(eq(organisations.id, id))
    await recordAudit(tx, now, { organisation: id, actor, action: 'organisation.named', subject: id })
  })
  return await admitUser(context, identity)
}
