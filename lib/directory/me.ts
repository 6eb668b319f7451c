import { z } from 'zod'
import { CONTRACTOR_STATUSES, IDENTITY_KINDS } from '#drizzle/schema/directory.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { plainText } from '#lib/text/plain-text.ts'
import type { InviteSettings } from './invites/invites.ts'
import { findPendingInvite } from './invites/search.ts'
import { inviteToken } from './invites/token.ts'
import { foundOrganisation, isEmpty, nameOrganisation } from './organisations.ts'
import { actorOf, admitUser, type User, type UserContext } from './user.ts'

/** The body of PATCH /me. */
export const meChanges = z.object({ orgName: plainText('orgName', 200) })

/** Who the user is: what an application needs to choose between onboarding, employer and contractor. */
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

/** Who `user` is. With several contractor records it is the newest that is shown. */
export async function describeMe(
  db: Database,
  { secret }: Pick<InviteSettings, 'secret'>,
  user: User,
  now: Date,
): Promise<Me> {
  const { identity, organisation } = user
  const [record] = user.records
  const invite = await findPendingInvite(db, identity, organisation?.id, now)
  const hasRecords = invite !== undefined && organisation !== undefined && !(await isEmpty(db, organisation.id))
  const isOnTheWay = record?.status === 'invited' || record?.status === 'onboarding'
  return {
    sub: identity.sub,
    kind: identity.kind,
    roles: [...(organisation ? (['employer'] as const) : []), ...(record ? (['contractor'] as const) : [])],
    needsOnboarding: isOnTheWay || (invite !== undefined && !hasRecords),
    ...(organisation && { employer: { orgId: organisation.id, orgName: organisation.name } }),
    ...(record && { contractor: { id: record.id, name: record.name, status: record.status } }),
    ...(invite && { invite: { company: invite.company, role: 'contractor', token: inviteToken(secret, invite) } }),
  }
}

/** Names the user's organisation, or founds one of that name. */
export async function nameOwnOrganisation({ db, user, now }: UserContext, name: string): Promise<User> {
  const { identity } = user
  await transactFor(db, user.organisation?.id ?? identity.sub, async (tx) => {
    const organisation = await foundOrganisation(tx, identity, name, now)
    if (organisation.name !== name) await nameOrganisation(tx, organisation.id, name, actorOf(identity), now)
  })
  return await admitUser(db, identity, now)
}
