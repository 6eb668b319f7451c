import { instructBatch, instructedShape, newInstructions } from '#lib/directory/batch-instructions.ts'
import { lockBatch } from '#lib/directory/batch-locking.ts'
import { removeBatch } from '#lib/directory/batch-removal.ts'
import {
  batchesQuery,
  batchesShape,
  batchProgressShape,
  batchShape,
  batchWithPayoutsShape,
  createBatch,
  findBatch,
  listBatches,
  newBatch,
  readBatchProgress,
} from '#lib/directory/batches.ts'
import { removedShape } from '#lib/directory/contractors/schema.ts'
import { becomeEmployer } from '#lib/directory/user.ts'
import { pageRequest } from '#lib/http/paging.ts'
import { BATCH_EXAMPLE, EXAMPLE, PAGE_EXAMPLE, PAYOUT_EXAMPLE } from './examples.ts'
import { operation } from './operation.ts'
import { answerPage } from './paging.ts'
import { refreshTransfersOf } from './refresh.ts'

const parameters = { id: { description: 'id of the batch', example: EXAMPLE.batchId } }
const { txHash: _, paidAt: __, ...instructed } = { ...PAYOUT_EXAMPLE, status: 'draft' }
const completed = {
  ...BATCH_EXAMPLE,
  status: 'completed',
  settledCount: 1,
  startedAt: EXAMPLE.started,
  completedAt: EXAMPLE.paid,
}

export const BATCH_OPERATIONS = [
  operation({
    id: 'listBatches',
    method: 'GET',
    path: '/batches',
    group: 'Batches',
    caller: 'employer',
    summary: 'List your batches, newest first',
    query: { schema: batchesQuery, example: { ...PAGE_EXAMPLE, status: 'completed', q: 'march' } },
    answer: {
      description: 'Up to 1,000 of them, or as many as `limit` says',
      schema: batchesShape,
      example: { batches: [completed] },
      paged: true,
    },
    handle: async ({ service, employer, query, request }) => {
      const page = await listBatches(await service.database(), employer, query, pageRequest(query))
      return answerPage(request, page, { batches: page.items })
    },
  }),
  operation({
    id: 'createBatch',
    method: 'POST',
    path: '/batches',
    group: 'Batches',
    caller: 'founder',
    summary: 'Start a batch',
    body: { schema: newBatch, example: { name: BATCH_EXAMPLE.name } },
    answer: { description: 'The batch, a draft with nothing in it', schema: batchShape, example: BATCH_EXAMPLE },
    refusals: ['organisation-dissolved'],
    handle: async ({ service, user, body, now }) => {
      const db = await service.database()
      return await createBatch({ db, employer: await becomeEmployer(db, user, now), now }, body)
    },
  }),
  operation({
    id: 'getBatch',
    method: 'GET',
    path: '/batches/{id}',
    group: 'Batches',
    caller: 'employer',
    summary: 'Look up a batch with its payouts',
    description:
      'Payouts keep the order of their instructions. Looking also settles what the ledger has decided meanwhile.',
    parameters,
    answer: {
      description: 'The batch',
      schema: batchWithPayoutsShape,
      example: { ...completed, payouts: [PAYOUT_EXAMPLE] },
    },
    refusals: ['batch-not-found'],
    handle: async ({ service, user, employer, params }) => {
      await refreshTransfersOf(service, user)
      return await findBatch(await service.database(), employer, params.id)
    },
  }),
  operation({
    id: 'removeBatch',
    method: 'DELETE',
    path: '/batches/{id}',
    group: 'Batches',
    caller: 'employer',
    extension: true,
    summary: 'Remove a batch of which nothing was ever sent',
    description: 'Its payouts go with it.',
    parameters,
    answer: { description: 'It is gone', schema: removedShape, example: { id: EXAMPLE.batchId } },
    refusals: ['batch-not-found', 'batch-sent'],
    handle: async ({ service, employer, params, now }) => {
      return await removeBatch({ db: await service.database(), employer, now }, params.id)
    },
  }),
  operation({
    id: 'instructBatch',
    method: 'POST',
    path: '/batches/{id}/instructions',
    group: 'Batches',
    caller: 'employer',
    summary: 'Add payouts to a draft',
    description: [
      'One payout for each instruction that names a contractor who is `ready` and not in the batch yet; the others come',
      'back as errors. The amount is in the proof that you will send: what is here of it only you can read.',
    ].join(' '),
    parameters,
    body: {
      schema: newInstructions,
      example: {
        instructions: [{ contractorId: EXAMPLE.contractorId, encryptedAmount: PAYOUT_EXAMPLE.encryptedAmount }],
      },
    },
    answer: {
      description: 'The payouts, and the instructions that became none',
      schema: instructedShape,
      example: {
        payouts: [instructed],
        errors: [{ contractorId: EXAMPLE.payoutId, reason: 'contractor not found' }],
      },
    },
    refusals: ['batch-not-found', 'batch-locked'],
    handle: async ({ service, employer, params, body, now }) => {
      const db = await service.database()
      return await instructBatch(
        { db, accounts: service.confidentialAccounts, employer, now },
        { id: params.id, instructions: body.instructions },
      )
    },
  }),
  operation({
    id: 'lockBatch',
    method: 'POST',
    path: '/batches/{id}/ready',
    group: 'Batches',
    caller: 'employer',
    summary: 'Lock a batch: it is ready to be sent',
    description: 'From now on its payouts can be paid, each by a transfer of its own. The call may be repeated.',
    parameters,
    answer: { description: 'The batch', schema: batchShape, example: { ...BATCH_EXAMPLE, status: 'ready' } },
    refusals: ['batch-not-found', 'batch-locked'],
    handle: async ({ service, employer, params, now }) => {
      return await lockBatch({ db: await service.database(), employer, now }, params.id)
    },
  }),
  operation({
    id: 'getBatchProgress',
    method: 'GET',
    path: '/batches/{id}/status',
    group: 'Batches',
    caller: 'employer',
    summary: 'How far a batch has come',
    description: 'For polling while payouts are sent.',
    parameters,
    answer: {
      description: 'Its status and counters',
      schema: batchProgressShape,
      example: { status: 'started', settledCount: 0, failedCount: 0, payoutCount: 1 },
    },
    refusals: ['batch-not-found'],
    handle: async ({ service, user, employer, params }) => {
      await refreshTransfersOf(service, user)
      return await readBatchProgress(await service.database(), employer, params.id)
    },
  }),
]
