import { acceptInvite } from '#lib/directory/contractors/acceptance.ts'
import { inviteContractor, presentIssuedInvite } from '#lib/directory/contractors/invites.ts'
import { contractorShape, inviteShape } from '#lib/directory/contractors/schema.ts'
import { CONTRACTOR_EXAMPLE, EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

export const INVITE_OPERATIONS = inGroup('Contractors', [
  operation({
    id: 'inviteContractor',
    route: 'POST /contractors/{id}/invite',
    caller: 'employer',
    summary: 'Invite a contractor, or renew its invite',
    description:
      'The link is valid for 14 days and can be used once; earlier links become void. It is mailed if mail is configured.',
    parameters: { id: { description: 'id of the contractor', example: EXAMPLE.contractorId } },
    response: {
      description: 'The link',
      schema: inviteShape,
      example: { inviteUrl: `https://pay.example/invite/${EXAMPLE.invite}` },
    },
    refusals: [
      'contractor-not-found',
      'contractor-inactive',
      'contractor-accepted',
      'invite-limit',
      'mail-refused',
      'mail-unavailable',
    ],
    idempotent: presentIssuedInvite,
    handle: (context) => inviteContractor(context, context.params.id),
  }),
  operation({
    id: 'acceptInvite',
    route: 'POST /invites/{token}/accept',
    caller: 'user',
    extension: true,
    summary: 'Accept an invite',
    description:
      'Links the caller to the contractor record. If the record has no address, it takes the account of a wallet session.',
    parameters: { token: { description: 'the last segment of the link', example: EXAMPLE.invite } },
    response: { description: 'The caller’s contractor record', schema: contractorShape, example: CONTRACTOR_EXAMPLE },
    refusals: ['own-invite', 'invite-for-other', 'invite-not-found', 'invite-accepted', 'address-taken'],
    handle: (context) => acceptInvite(context, context.params.token),
  }),
])
