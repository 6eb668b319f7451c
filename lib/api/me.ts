import {
  describeMe,
  joinIdentity,
  meChanges,
  meShape,
  nameOrganisation,
  otherIdentity,
  verifyOtherSession,
} from '#lib/directory/me.ts'
import { admitUser } from '#lib/directory/users.ts'
import { EXAMPLE, ME_EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

export const ME_OPERATIONS = inGroup('Me', [
  operation({
    id: 'getMe',
    route: 'GET /me',
    caller: 'user',
    summary: 'Get the caller and its roles',
    description: 'Tells an application whether to show onboarding, the employer app or the contractor portal.',
    response: { description: 'The caller', schema: meShape, example: ME_EXAMPLE },
    handle: (context) => describeMe(context),
  }),
  operation({
    id: 'nameOrganisation',
    route: 'PATCH /me',
    caller: 'user',
    extension: true,
    summary: 'Rename your organisation, or create one',
    body: { schema: meChanges, example: { orgName: ME_EXAMPLE.employer.orgName } },
    response: { description: 'The caller', schema: meShape, example: ME_EXAMPLE },
    handle: async (context) => {
      return await describeMe({ ...context, user: await nameOrganisation(context, context.body.orgName) })
    },
  }),
  operation({
    id: 'joinIdentity',
    route: 'POST /me/identities',
    caller: 'session',
    extension: true,
    summary: 'Add your other identity to your organisation',
    description: 'For a person with a wallet and an email. The session of the other identity proves that it is yours.',
    body: { schema: otherIdentity, example: { session: EXAMPLE.session } },
    response: { description: 'The caller', schema: meShape, example: ME_EXAMPLE },
    refusals: ['employer-required', 'organisation-in-use', 'provider-mismatch'],
    handle: async ({ service, session, body, ...request }) => {
      // Both sessions are verified before the first query.
      const other = await verifyOtherSession(request.settings.sessions, body.session, request.now)
      const db = await service.database()
      const context = { ...request, db, user: await admitUser({ db, now: request.now }, session) }
      return await describeMe({ ...context, user: await joinIdentity(context, other) })
    },
  }),
])
