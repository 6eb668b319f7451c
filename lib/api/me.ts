import { z } from 'zod'
import type { UserContext } from '#lib/directory/context.ts'
import {
  joinIdentity,
  otherIdentity,
  separateIdentities,
  separation,
  verifyOtherSession,
} from '#lib/directory/joined-identities.ts'
import { changeOrganisation, describeMe, meChanges, meShape } from '#lib/directory/me.ts'
import { admitUser, provenAccounts } from '#lib/directory/users.ts'
import type { Service } from '#lib/server/services.ts'
import { readQuotaDay, readUsage } from '#lib/transfers/quota.ts'
import { EXAMPLE, ME_EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

export const callerShape = meShape.extend({
  quota: z
    .object({
      transfers: z.object({ used: z.int(), limit: z.int() }),
      stroops: z.object({ used: z.string(), limit: z.string() }),
      resetsAt: z.iso.datetime(),
    })
    .optional()
    .meta({
      description:
        'what the person’s account has used of its daily limits of sponsored transfers; absent without an account',
      'x-extension': true,
    }),
})

/** The caller with the use of its quota: that of the session's account, or else of the first account joined to it. */
async function present({ service, ...context }: UserContext & { service: Service }) {
  const [account] = provenAccounts(context.user)
  const limits = service.settings.sponsor?.limits
  const day = account !== undefined && limits && (await readQuotaDay(context.db))
  return {
    ...(await describeMe(context)),
    ...(day && { quota: await readUsage(context.db, { account, day }, limits) }),
  }
}

export const ME_OPERATIONS = inGroup('Me', [
  operation({
    id: 'getMe',
    route: 'GET /me',
    caller: 'user',
    summary: 'Get the caller and its roles',
    description: 'Tells an application whether to show onboarding, the employer app or the contractor portal.',
    response: { description: 'The caller', schema: callerShape, example: ME_EXAMPLE },
    handle: (context) => present(context),
  }),
  operation({
    id: 'nameOrganisation',
    route: 'PATCH /me',
    caller: 'user',
    extension: true,
    summary: 'Change your organisation, or create one',
    body: { schema: meChanges, example: { orgName: ME_EXAMPLE.employer.orgName, notifyPayees: true } },
    refusals: ['org-name-required'],
    response: { description: 'The caller', schema: callerShape, example: ME_EXAMPLE },
    handle: async (context) => {
      return await present({ ...context, user: await changeOrganisation(context, context.body) })
    },
  }),
  operation({
    id: 'joinIdentity',
    route: 'POST /me/identities',
    caller: 'session',
    extension: true,
    summary: 'Join your other identity',
    description: [
      'For a person with a wallet and an email. The session of the other identity proves that it is yours. From then on',
      'both are one person: roles, records, payouts and organisation are the same, whichever signs in. An identity that was joined',
      'from the identity provider, such as that of a program, can join and remove no others.',
    ].join(' '),
    body: { schema: otherIdentity, example: { session: EXAMPLE.session } },
    response: { description: 'The caller', schema: callerShape, example: ME_EXAMPLE },
    refusals: ['organisation-in-use', 'provider-mismatch', 'identity-joined'],
    handle: async ({ service, session, body, ...request }) => {
      // Both sessions are verified before the first query.
      const other = await verifyOtherSession(request.settings.sessions, body.session, request.now)
      const db = await service.database()
      const context = { ...request, service, db, user: await admitUser({ db, now: request.now }, session) }
      return await present({ ...context, user: await joinIdentity(context, other) })
    },
  }),
  operation({
    id: 'separateIdentities',
    route: 'DELETE /me/identities/{kind}',
    caller: 'user',
    extension: true,
    summary: 'Undo the joining of identities',
    description: [
      'Each identity of this kind that was joined is a person of its own again, with the contractor records that it has',
      'accepted. The first identity keeps the organisation. With `sub`, only that identity.',
    ].join(' '),
    query: { schema: separation, example: { sub: 'ada' } },
    parameters: { kind: { description: 'the kind of the joined identities: `ledger` or `idp`', example: 'ledger' } },
    response: {
      description: 'The caller',
      schema: callerShape,
      example: { ...ME_EXAMPLE, identities: ME_EXAMPLE.identities.slice(0, 1) },
    },
    refusals: ['identity-not-found', 'identity-first', 'identity-paying', 'identity-joined'],
    handle: async (context) => {
      return await present({
        ...context,
        user: await separateIdentities(context, { ...context.params, ...context.query }),
      })
    },
  }),
])
