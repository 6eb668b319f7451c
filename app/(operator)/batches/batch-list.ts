import { BATCH_FILTERS, type BatchLine, readBatches } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import type { ListFile } from '../csv-file.ts'
import { statusWord } from '../status.tsx'

export const BATCH_LIST: ListFile<typeof BATCH_FILTERS, BatchLine> = {
  name: 'batches',
  checks: BATCH_FILTERS,
  read: (db, filters) => readBatches(db, filters),
  columns: [
    ['Batch', ({ name }) => name],
    ['Organisation', ({ organisationName }) => organisationName],
    ['Status', (batch, now) => statusWord('batch', batchState(batch, now))],
    ['Paid', ({ settledCount }) => settledCount],
    ['Failed', ({ failedCount }) => failedCount],
    ['Payouts', ({ payoutCount }) => payoutCount],
    ['Created (UTC)', ({ createdAt }) => createdAt],
    ['Started (UTC)', ({ startedAt }) => startedAt],
    ['Last progress (UTC)', ({ progressedAt }) => progressedAt],
    ['Completed (UTC)', ({ completedAt }) => completedAt],
    ['Batch id', ({ id }) => id],
    ['Organisation id', ({ organisation }) => organisation],
  ],
}
