import { instructedShape, newInstructions } from '#lib/directory/batch-instructions.ts'
import {
  batchesQuery,
  batchesShape,
  batchProgressShape,
  batchShape,
  batchWithPayoutsShape,
  newBatch,
} from '#lib/directory/batches.ts'
import { removedShape } from '#lib/directory/contractors/schema.ts'
import { DISSOLVED } from '#lib/directory/organisations.ts'
import { payoutsQuery, payoutsShape } from '#lib/directory/payouts/payouts.ts'
import { ANY_PAGE, BATCH_EXAMPLE, EXAMPLE, OTHER_PROVIDER, PAYOUT_EXAMPLE } from './examples.ts'
import type { Operation } from './operation.ts'

const parameters = { id: { description: 'id of the batch', example: EXAMPLE.batchId } }
const NOT_FOUND = ['batch not found']
const shared = { group: 'Batches', caller: 'employer' } as const
const { txHash: _, paidAt: __, ...instructed } = { ...PAYOUT_EXAMPLE, status: 'draft' }
const completed = {
  ...BATCH_EXAMPLE,
  status: 'completed',
  settledCount: 1,
  startedAt: EXAMPLE.started,
  completedAt: EXAMPLE.paid,
}

export const BATCH_OPERATIONS: Operation[] = [
  {
    ...shared,
    id: 'listBatches',
    method: 'get',
    path: '/batches',
    summary: 'List your batches, newest first',
    query: {
      schema: batchesQuery,
      example: { ...ANY_PAGE.example, status: 'completed', q: 'march' },
      messages: ['cursor is not one of ours'],
    },
    answer: {
      description: 'Up to 1,000 of them, or as many as `limit` says',
      schema: batchesShape,
      example: { batches: [completed] },
      paged: true,
    },
  },
  {
    ...shared,
    id: 'createBatch',
    method: 'post',
    path: '/batches',
    summary: 'Start a batch',
    body: { schema: newBatch, example: { name: BATCH_EXAMPLE.name } },
    answer: { description: 'The batch, a draft with nothing in it', schema: batchShape, example: BATCH_EXAMPLE },
    refusals: { 409: [DISSOLVED] },
  },
  {
    ...shared,
    id: 'getBatch',
    method: 'get',
    path: '/batches/{id}',
    summary: 'Look up a batch with its payouts',
    description:
      'Payouts keep the order of their instructions. Looking also settles what the ledger has decided meanwhile.',
    parameters,
    answer: {
      description: 'The batch',
      schema: batchWithPayoutsShape,
      example: { ...completed, payouts: [PAYOUT_EXAMPLE] },
    },
    refusals: { 404: NOT_FOUND },
  },
  {
    ...shared,
    id: 'removeBatch',
    method: 'delete',
    path: '/batches/{id}',
    extension: true,
    summary: 'Remove a batch of which nothing was ever sent',
    description: 'Its payouts go with it.',
    parameters,
    answer: { description: 'It is gone', schema: removedShape, example: { id: EXAMPLE.batchId } },
    refusals: { 404: NOT_FOUND, 409: ['a payout of this batch has been sent'] },
  },
  {
    ...shared,
    id: 'instructBatch',
    method: 'post',
    path: '/batches/{id}/instructions',
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
    refusals: { 404: NOT_FOUND, 409: ['batch is locked'] },
  },
  {
    ...shared,
    id: 'lockBatch',
    method: 'post',
    path: '/batches/{id}/ready',
    summary: 'Lock a batch: it is ready to be sent',
    description: 'From now on its payouts can be paid, each by a transfer of its own. The call may be repeated.',
    parameters,
    answer: { description: 'The batch', schema: batchShape, example: { ...BATCH_EXAMPLE, status: 'ready' } },
    refusals: { 404: NOT_FOUND, 409: ['batch is {status}'] },
  },
  {
    ...shared,
    id: 'getBatchProgress',
    method: 'get',
    path: '/batches/{id}/status',
    summary: 'How far a batch has come',
    description: 'For polling while payouts are sent.',
    parameters,
    answer: {
      description: 'Its status and counters',
      schema: batchProgressShape,
      example: { status: 'started', settledCount: 0, failedCount: 0, payoutCount: 1 },
    },
    refusals: { 404: NOT_FOUND },
  },
  {
    id: 'listPayouts',
    method: 'get',
    path: '/payouts',
    group: 'Batches',
    caller: 'session',
    summary: 'List the payouts that you make and those made out to you, newest first',
    query: {
      schema: payoutsQuery,
      example: {
        ...ANY_PAGE.example,
        batchId: EXAMPLE.batchId,
        contractorId: EXAMPLE.contractorId,
        status: 'paid',
        from: '2026-03-01T00:00:00Z',
        to: '2026-04-01T00:00:00Z',
      },
      messages: ['cursor is not one of ours'],
    },
    answer: {
      description: 'Up to 1,000 of them, or as many as `limit` says',
      schema: payoutsShape,
      example: { payouts: [PAYOUT_EXAMPLE] },
      paged: true,
    },
    refusals: { 403: [OTHER_PROVIDER] },
  },
  {
    ...shared,
    id: 'cancelPayout',
    method: 'delete',
    path: '/payouts/{id}',
    extension: true,
    summary: 'Cancel a payout that is not on its way',
    description: [
      'A `draft`, `ready` or `failed` one, or a `pending` one with an `error`, of whose transfer nothing can be learned any',
      'more. The contractor may then be instructed again while the batch is a draft.',
    ].join(' '),
    parameters: { id: { description: 'id of the payout', example: EXAMPLE.payoutId } },
    answer: { description: 'It is canceled', schema: removedShape, example: { id: EXAMPLE.payoutId } },
    refusals: { 404: ['payout not found'], 409: ['payout is {state}'] },
  },
]
