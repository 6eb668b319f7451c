import { payoutState, WHY_OVERDUE } from '#lib/dashboard/lateness.ts'
import { PAYOUTS, type PayoutLine } from '#lib/dashboard/payouts.ts'
import { fileColumn, linkColumn, statusColumn, timeColumn } from '../columns.tsx'
import type { View } from '../figures.tsx'
import type { ListDisplay } from '../list-display.ts'
import { RecordLink } from '../record-links.tsx'
import type { Column } from '../table.tsx'

/** Why a payout is not paid, if there is a reason. */
export function whyUnpaid(payout: PayoutLine, now: Date): string | null {
  return payoutState(payout, now) === 'overdue' ? WHY_OVERDUE : payout.meaning || payout.error
}

const beneath = (payout: PayoutLine, { now }: View) => (
  <p className="max-w-prose text-xs text-soft xl:hidden">{whyUnpaid(payout, now)}</p>
)

const COLUMNS: readonly Column<PayoutLine>[] = [
  statusColumn(payoutState),
  fileColumn('Account', ({ address }) => address),
  fileColumn('Transaction', ({ ledgerHash }) => ledgerHash),
  fileColumn('Inner hash', ({ innerHash }) => innerHash),
  {
    head: 'Why',
    from: 'xl',
    isOmitted: true,
    // One line; the payout's page has the whole text.
    cell: (payout, { now }) => (
      <span title={whyUnpaid(payout, now) ?? ''} className="block max-w-md truncate text-xs leading-5 text-soft">
        {whyUnpaid(payout, now)}
      </span>
    ),
  },
  { head: 'Payout', from: 'sm', cell: ({ id }) => <RecordLink type="payout" id={id} /> },
  timeColumn('Paid', ({ paidAt }) => paidAt, { from: 'sm' }),
  // In the file it is after the time.
  fileColumn('Why', whyUnpaid),
]

/** The columns of the payouts of one contractor. */
export const CONTRACTOR_PAYOUT_COLUMNS: readonly Column<PayoutLine>[] = [
  { ...linkColumn('Batch', 'batch', ({ batchId: id, batch: name }) => ({ id, name })), beneath },
  ...COLUMNS,
]

/** The payouts of a batch on its page, and the file of those or of all. */
export const PAYOUT_LIST: ListDisplay<typeof PAYOUTS.filters, PayoutLine> = {
  records: PAYOUTS,
  here: '/batches',
  title: 'A batch',
  nouns: ['payout', 'payouts'],
  columns: [
    fileColumn('Created (UTC)', ({ createdAt }) => createdAt),
    fileColumn('Organisation', ({ organisation }) => organisation),
    fileColumn('Batch', ({ batch }) => batch),
    {
      ...linkColumn('Contractor', 'contractor', ({ contractorId: id, contractor: name }) => ({ id, name })),
      beneath,
      value: ({ contractor }) => contractor,
    },
    ...COLUMNS,
    fileColumn('Payout id', ({ id }) => id),
    fileColumn('Batch id', ({ batchId }) => batchId),
    fileColumn('Contractor id', ({ contractorId }) => contractorId),
  ],
  empty: () => ({
    title: 'No payouts yet',
    children: (
      <>
        The employer adds them with <code>POST /batches/{'{id}'}/instructions</code>, then locks the batch.
      </>
    ),
  }),
}
