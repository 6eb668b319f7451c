import { joinedIdentity } from '#lib/directory/identities.ts'
import { meChanges, meShape } from '#lib/directory/me.ts'
import { EXAMPLE, ME_EXAMPLE, OTHER_PROVIDER } from './examples.ts'
import type { Operation } from './operation.ts'

const shared = { group: 'Me', caller: 'session' } as const

export const ME_OPERATIONS: Operation[] = [
  {
    ...shared,
    id: 'getMe',
    method: 'get',
    path: '/me',
    summary: 'Who you are, and in which roles',
    description: 'What an application needs to choose between onboarding, employer and contractor.',
    answer: { description: 'You', schema: meShape, example: ME_EXAMPLE },
    refusals: { 403: [OTHER_PROVIDER] },
  },
  {
    ...shared,
    id: 'nameOrganisation',
    method: 'patch',
    path: '/me',
    extension: true,
    summary: 'Name your organisation, or found one',
    body: { schema: meChanges, example: { orgName: ME_EXAMPLE.employer.orgName } },
    answer: { description: 'You', schema: meShape, example: ME_EXAMPLE },
    refusals: { 403: [OTHER_PROVIDER] },
  },
  {
    ...shared,
    id: 'joinIdentity',
    method: 'post',
    path: '/me/identities',
    extension: true,
    summary: 'Bring your other identity into your organisation',
    description: 'A wallet and an email of one person: the other one’s session proves that it is yours.',
    body: { schema: joinedIdentity, example: { session: EXAMPLE.session } },
    answer: { description: 'You', schema: meShape, example: ME_EXAMPLE },
    refusals: {
      403: [OTHER_PROVIDER],
      409: ["the other session's organisation has records of its own"],
    },
  },
]
