import { payoutState } from '#lib/dashboard/lateness.ts'
import type { PayoutLine } from '#lib/dashboard/payouts.ts'
import { Moment } from '../figures.tsx'
import { BatchLink, ContractorLink, PayoutLink } from '../record-links.tsx'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { whyUnpaid } from './payout-list.ts'

/** The columns of payouts: their contractor, or their batch on the contractor's page, and why they are not paid. */
export const payoutColumns = (by: 'contractor' | 'batch', now: Date): Column<PayoutLine>[] => [
  {
    head: by === 'contractor' ? 'Contractor' : 'Batch',
    cell: ({ contractor, contractorId, batch, batchId }) => (
      <span className="font-medium">
        {by === 'contractor' ? (
          <ContractorLink id={contractorId} name={contractor} />
        ) : (
          <BatchLink id={batchId} name={batch} />
        )}
      </span>
    ),
    beneath: (payout) => <p className="max-w-prose text-xs text-soft xl:hidden">{whyUnpaid(payout, now)}</p>,
  },
  { head: 'Status', cell: (payout) => <Status of="payout" is={payoutState(payout, now)} /> },
  {
    head: 'Why',
    from: 'xl',
    // One line; the payout's page has the whole text.
    cell: (payout) => (
      <span title={whyUnpaid(payout, now) ?? ''} className="block max-w-md truncate text-xs leading-5 text-soft">
        {whyUnpaid(payout, now)}
      </span>
    ),
  },
  { head: 'Payout', from: 'sm', isRepeated: true, cell: ({ id }) => <PayoutLink id={id} name={id.slice(0, 8)} /> },
  {
    head: 'Paid',
    from: 'sm',
    isRepeated: true,
    cell: ({ paidAt }) => (paidAt ? <Moment at={paidAt} now={now} /> : '–'),
  },
]
