import { type BatchLine, readBatches } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import type { Filters, ListRequest } from '#lib/dashboard/list.ts'
import type { ListFile } from '../csv-file.ts'
import { statusWord } from '../status.tsx'

export const BATCH_LIST: ListFile<Filters<ListRequest>, BatchLine> = {
  name: 'batches',
  filters: ({ q = '', status = '', organisation = '' }) => ({ q, status, organisation }),
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
