import { z } from 'zod'
import { pageQuery } from '#lib/db/paging.ts'
import {
  batchesQuery,
  batchesShape,
  batchShape,
  batchWithPayoutsShape,
  createBatch,
  findBatch,
  listBatches,
  lockBatch,
  newBatch,
  presentCreatedBatch,
  removeBatch,
} from '#lib/directory/batches/batches.ts'
import { instructedShape, newInstructions } from '#lib/directory/batches/instruction-rows.ts'
import { instructBatch, presentInstructed } from '#lib/directory/batches/instructions.ts'
import { batchProgressShape, pollBatchStatus } from '#lib/directory/batches/status.ts'
import { removedShape } from '#lib/directory/contractors/schema.ts'
import { adoptTransfersOf } from '#lib/transfers/adoption.ts'
import { BATCH_EXAMPLE, EXAMPLE, PAGE_EXAMPLE, PAYOUT_EXAMPLE } from './examples.ts'
import { inGroup, operation, respondWithPage } from './operation.ts'
import { adoptTransfersSeenBy } from './payouts.ts'

const parameters = { id: { description: 'id of the batch', example: EXAMPLE.batchId } }
const { name, externalId } = BATCH_EXAMPLE
const { txHash: _, paidAt: __, ...instructed } = { ...PAYOUT_EXAMPLE, status: 'draft' }
const completed = {
  ...BATCH_EXAMPLE,
  status: 'completed',
  settledCount: 1,
  startedAt: EXAMPLE.started,
  completedAt: EXAMPLE.paid,
}

export const BATCH_OPERATIONS = inGroup('Batches', [
  operation({
    id: 'listBatches',
    route: 'GET /batches',
    caller: 'employer',
    summary: 'List your batches, newest first',
    query: { schema: batchesQuery, example: { ...PAGE_EXAMPLE, status: 'completed', q: 'march', externalId } },
    response: {
      description: 'Up to 1,000 batches, or `limit`',
      schema: batchesShape,
      example: { batches: [completed] },
      paged: 'link and total',
    },
    handle: async (context) => {
      const page = await listBatches(context, context.query)
      return respondWithPage(context.request, page, { batches: page.items })
    },
  }),
  operation({
    id: 'createBatch',
    route: 'POST /batches',
    caller: 'founder',
    summary: 'Create a batch',
    body: { schema: newBatch, example: { name, externalId } },
    response: { description: 'The batch, an empty draft', schema: batchShape, example: BATCH_EXAMPLE },
    refusals: ['batch-not-found', 'external-id-taken', 'organisation-dissolved'],
    idempotent: presentCreatedBatch,
    handle: (context) => createBatch(context, context.body),
  }),
  operation({
    id: 'getBatch',
    route: 'GET /batches/{id}',
    caller: 'employer',
    summary: 'Get a batch with its payouts',
    description:
      'Payouts are in the order of their instructions. The request also settles transfers that the ledger has decided.',
    parameters,
    // Only lists refuse unknown parameters.
    query: { schema: z.object(pageQuery.shape), example: PAGE_EXAMPLE },
    response: {
      description: 'The batch with up to 1,000 of its payouts, or `limit`',
      schema: batchWithPayoutsShape,
      example: { ...completed, payouts: [PAYOUT_EXAMPLE] },
      paged: 'link',
    },
    refusals: ['batch-not-found'],
    handle: async (context) => {
      await adoptTransfersSeenBy(context)
      const { batch, payouts } = await findBatch(context, { ...context.params, ...context.query })
      return respondWithPage(context.request, payouts, { ...batch, payouts: payouts.items })
    },
  }),
  operation({
    id: 'removeBatch',
    route: 'DELETE /batches/{id}',
    caller: 'employer',
    extension: true,
    summary: 'Delete a batch none of whose payouts was ever submitted',
    description: 'Its payouts are deleted too. A batch that has had a run stays.',
    parameters,
    response: { description: 'The batch is deleted', schema: removedShape, example: { id: EXAMPLE.batchId } },
    refusals: ['batch-not-found', 'batch-sent', 'batch-run'],
    handle: (context) => removeBatch(context, context.params.id),
  }),
  operation({
    id: 'instructBatch',
    route: 'POST /batches/{id}/instructions',
    caller: 'employer',
    summary: 'Add payouts to a draft',
    description: [
      'Creates a payout for each instruction whose contractor is `ready` and not in the batch yet. The response lists the',
      'others as errors, except those whose `externalId` a payout of the batch has already: its id is in `existing`. The amount itself is inside the proof that you send later; `encryptedAmount` is a note that only',
      'you can read.',
    ].join(' '),
    parameters,
    body: {
      schema: newInstructions,
      example: {
        instructions: [
          {
            contractorId: EXAMPLE.contractorId,
            encryptedAmount: PAYOUT_EXAMPLE.encryptedAmount,
            externalId: PAYOUT_EXAMPLE.externalId,
          },
        ],
      },
    },
    response: {
      description: 'The new payouts, and the instructions that were rejected',
      schema: instructedShape,
      example: {
        payouts: [instructed],
        existing: [EXAMPLE.jobId],
        errors: [{ contractorId: EXAMPLE.payoutId, reason: 'contractor not found' }],
      },
    },
    refusals: ['batch-not-found', 'batch-locked'],
    idempotent: (context, outcome) => presentInstructed(context, { id: context.params.id, ...context.body }, outcome),
    handle: (context) => instructBatch(context, { id: context.params.id, ...context.body }),
  }),
  operation({
    id: 'lockBatch',
    route: 'POST /batches/{id}/ready',
    caller: 'employer',
    summary: 'Lock a batch for sending',
    description: 'After that its payouts can be paid, one transfer each. Repeating the request is safe.',
    parameters,
    response: { description: 'The batch', schema: batchShape, example: { ...BATCH_EXAMPLE, status: 'ready' } },
    refusals: ['batch-not-found', 'batch-locked'],
    handle: (context) => lockBatch(context, context.params.id),
  }),
  operation({
    id: 'getBatchProgress',
    route: 'GET /batches/{id}/status',
    caller: 'session',
    role: 'employer',
    summary: 'Get the progress of a batch',
    description: 'Poll it while you send payouts.',
    parameters,
    response: {
      description: 'The status and the counters',
      schema: batchProgressShape,
      example: { status: 'started', settledCount: 0, failedCount: 0, payoutCount: 1 },
    },
    refusals: ['employer-required', 'provider-mismatch', 'batch-not-found'],
    handle: async ({ service, session, params, ...given }) => {
      const context = { ...given, db: await service.database() }
      const read = () => pollBatchStatus(context, { identity: session, id: params.id })
      const { progress, organisation, hasOpenTransfers } = await read()
      if (!hasOpenTransfers) return progress
      await adoptTransfersOf(context.db, service.tracker, [organisation])
      return (await read()).progress
    },
  }),
])
