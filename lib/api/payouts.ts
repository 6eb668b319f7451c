import type { Database } from '#lib/db/connection.ts'
import { removedShape } from '#lib/directory/contractors/schema.ts'
import { cancelPayout } from '#lib/directory/payouts/cancellation.ts'
import { listPayouts, organisationsSeenBy, payoutsQuery, payoutsShape } from '#lib/directory/payouts/payouts.ts'
import type { User } from '#lib/directory/users.ts'
import type { Service } from '#lib/server/services.ts'
import { adoptTransfersOf } from '#lib/transfers/adoption.ts'
import { EXAMPLE, PAGE_EXAMPLE, PAYOUT_EXAMPLE } from './examples.ts'
import { inGroup, operation, respondWithPage } from './operation.ts'

/** Looks up the open transfers of the payouts that the user can see. */
export async function adoptTransfersSeenBy({
  service,
  db,
  user,
}: {
  service: Service
  db: Database
  user: User
}): Promise<void> {
  await adoptTransfersOf(db, service.tracker, organisationsSeenBy(user))
}

export const PAYOUT_OPERATIONS = inGroup('Batches', [
  operation({
    id: 'listPayouts',
    route: 'GET /payouts',
    caller: 'user',
    summary: 'List the payouts that you make or receive, newest first',
    query: {
      schema: payoutsQuery,
      example: {
        ...PAGE_EXAMPLE,
        batchId: EXAMPLE.batchId,
        contractorId: EXAMPLE.contractorId,
        status: 'paid',
        externalId: PAYOUT_EXAMPLE.externalId,
        from: '2026-03-01T00:00:00Z',
        to: '2026-04-01T00:00:00Z',
      },
    },
    response: {
      description: 'Up to 1,000 payouts, or `limit`',
      schema: payoutsShape,
      example: { payouts: [PAYOUT_EXAMPLE] },
      paged: 'link',
    },
    handle: async (context) => {
      await adoptTransfersSeenBy(context)
      const page = await listPayouts(context, context.query)
      return respondWithPage(context.request, page, { payouts: page.items })
    },
  }),
  operation({
    id: 'cancelPayout',
    route: 'DELETE /payouts/{id}',
    caller: 'employer',
    extension: true,
    summary: 'Cancel a payout that is not being paid',
    description: [
      'Cancels a `draft`, `ready` or `failed` payout, or a `pending` one with an `error`, whose transfer has an unknown',
      'outcome. While the batch is a draft, the contractor can then be instructed again.',
    ].join(' '),
    parameters: { id: { description: 'id of the payout', example: EXAMPLE.payoutId } },
    response: { description: 'The payout is canceled', schema: removedShape, example: { id: EXAMPLE.payoutId } },
    refusals: ['payout-not-found', 'payout-sent'],
    handle: (context) => cancelPayout(context, context.params.id),
  }),
])
