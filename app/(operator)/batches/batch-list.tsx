import { BATCHES, type BatchLine } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import { fileColumn, linkColumn, organisationColumn, statusColumn, timeColumn } from '../columns.tsx'
import type { ListDisplay } from '../list-display.ts'
import { PAYOUT_LIST } from '../payouts/payout-list.tsx'
import { Progress } from '../progress.tsx'
import { ApiReference } from '../record-links.tsx'
import { DemoHint } from '../table.tsx'

export const BATCH_LIST: ListDisplay<typeof BATCHES.filters, BatchLine> = {
  records: BATCHES,
  here: '/batches',
  title: 'Batches',
  nouns: ['batch', 'batches'],
  // Status and time filter batches, but the file of payouts would also include those of other batches.
  moreFiles: ({ status, from, to, organisation }) =>
    status === '' && from === '' && to === ''
      ? [{ list: PAYOUT_LIST, of: organisation ? 'Payouts of the organisation' : 'All payouts' }]
      : [],
  columns: [
    {
      ...linkColumn('Batch', 'batch', (batch) => batch),
      isName: true,
      beneath: (batch) => (
        <div className="my-1 md:hidden">
          <BatchProgress batch={batch} />
        </div>
      ),
      value: ({ name }) => name,
    },
    organisationColumn({ from: 'xl', isName: true }),
    statusColumn(batchState),
    {
      head: 'Paid',
      from: 'md',
      isOmitted: true,
      cell: (batch) => <BatchProgress batch={batch} />,
      value: (batch) => batch.settledCount,
    },
    fileColumn('Failed', ({ failedCount }) => failedCount),
    fileColumn('Payouts', ({ payoutCount }) => payoutCount),
    timeColumn('Created', ({ createdAt }) => createdAt, { from: 'sm' }),
    fileColumn('Started (UTC)', ({ startedAt }) => startedAt),
    timeColumn('Last progress', ({ progressedAt }) => progressedAt, { from: 'xl' }),
    fileColumn('Completed (UTC)', ({ completedAt }) => completedAt),
    fileColumn('Batch id', ({ id }) => id),
    fileColumn('Organisation id', ({ organisation }) => organisation),
  ],
  empty: ({ network }) => ({
    title: 'No batches yet',
    children: (
      <>
        An employer creates one with <code>POST /batches</code>; see the <ApiReference />.
        <DemoHint network={network.name} what="To watch one here" />
      </>
    ),
  }),
}

/** How many payouts of a batch are paid and have failed. */
export function BatchProgress({ batch, label = batch.name }: { batch: BatchLine; label?: string }) {
  const { settledCount, failedCount, payoutCount } = batch
  return <Progress label={label} settled={settledCount} failed={failedCount} total={payoutCount} />
}
