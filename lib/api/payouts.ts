import { removedShape } from '#lib/directory/contractors/schema.ts'
import { cancelPayout } from '#lib/directory/payouts/cancelling.ts'
import { listPayouts, payoutsQuery, payoutsShape, viewerOf } from '#lib/directory/payouts/payouts.ts'
import { pageRequest } from '#lib/http/paging.ts'
import { EXAMPLE, PAGE_EXAMPLE, PAYOUT_EXAMPLE } from './examples.ts'
import { operation } from './operation.ts'
import { answerPage } from './paging.ts'
import { refreshTransfersOf } from './refresh.ts'

export const PAYOUT_OPERATIONS = [
  operation({
    id: 'listPayouts',
    method: 'GET',
    path: '/payouts',
    group: 'Batches',
    caller: 'user',
    summary: 'List the payouts that you make and those made out to you, newest first',
    query: {
      schema: payoutsQuery,
      example: {
        ...PAGE_EXAMPLE,
        batchId: EXAMPLE.batchId,
        contractorId: EXAMPLE.contractorId,
        status: 'paid',
        from: '2026-03-01T00:00:00Z',
        to: '2026-04-01T00:00:00Z',
      },
    },
    answer: {
      description: 'Up to 1,000 of them, or as many as `limit` says',
      schema: payoutsShape,
      example: { payouts: [PAYOUT_EXAMPLE] },
      paged: true,
    },
    handle: async ({ service, user, query, request }) => {
      await refreshTransfersOf(service, user)
      const page = await listPayouts(await service.database(), viewerOf(user), query, pageRequest(query))
      return answerPage(request, page, { payouts: page.items })
    },
  }),
  operation({
    id: 'cancelPayout',
    method: 'DELETE',
    path: '/payouts/{id}',
    group: 'Batches',
    caller: 'employer',
    extension: true,
    summary: 'Cancel a payout that is not on its way',
    description: [
      'A `draft`, `ready` or `failed` one, or a `pending` one with an `error`, of whose transfer nothing can be learned any',
      'more. The contractor may then be instructed again while the batch is a draft.',
    ].join(' '),
    parameters: { id: { description: 'id of the payout', example: EXAMPLE.payoutId } },
    answer: { description: 'It is canceled', schema: removedShape, example: { id: EXAMPLE.payoutId } },
    refusals: ['payout-not-found', 'payout-sent'],
    handle: async ({ service, employer, params, now }) => {
      return await cancelPayout({ db: await service.database(), employer, now }, params.id)
    },
  }),
]
