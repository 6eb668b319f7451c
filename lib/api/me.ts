import {
  describeMe,
  joinedIdentity,
  joinIdentity,
  meChanges,
  meShape,
  nameOwnOrganisation,
  verifyJoined,
} from '#lib/directory/me.ts'
import { admitUser } from '#lib/directory/user.ts'
import { EXAMPLE, ME_EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

export const ME_OPERATIONS = inGroup('Me', [
  operation({
    id: 'getMe',
    route: 'GET /me',
    caller: 'user',
    summary: 'Look up yourself and your roles',
    description: 'What an application needs to choose between onboarding, employer and contractor.',
    answer: { description: 'You', schema: meShape, example: ME_EXAMPLE },
    handle: (context) => describeMe(context),
  }),
  operation({
    id: 'nameOrganisation',
    route: 'PATCH /me',
    caller: 'user',
    extension: true,
    summary: 'Name your organisation, or found one',
    body: { schema: meChanges, example: { orgName: ME_EXAMPLE.employer.orgName } },
    answer: { description: 'You', schema: meShape, example: ME_EXAMPLE },
    handle: async (context) => {
      return await describeMe({ ...context, user: await nameOwnOrganisation(context, context.body.orgName) })
    },
  }),
  operation({
    id: 'joinIdentity',
    route: 'POST /me/identities',
    caller: 'session',
    extension: true,
    summary: 'Bring your other identity into your organisation',
    description: 'A wallet and an email of one person: the session of the other one proves that it is yours.',
    body: { schema: joinedIdentity, example: { session: EXAMPLE.session } },
    answer: { description: 'You', schema: meShape, example: ME_EXAMPLE },
    refusals: ['employer-required', 'organisation-in-use', 'provider-mismatch'],
    handle: async ({ service, settings, session, body, now }) => {
      // Both sessions are judged before the database is asked.
      const other = await verifyJoined(settings.sessions, body.session, now)
      const db = await service.database()
      const user = await admitUser({ db, now }, session)
      return await describeMe({ db, settings, now, user: await joinIdentity({ db, user, now }, other) })
    },
  }),
])
