import { payoutState } from '#lib/dashboard/lateness.ts'
import type { PayoutLine } from '#lib/dashboard/payouts.ts'
import { Moment } from '../../figures.tsx'
import { Address, Hash, TransactionHash } from '../../hash.tsx'
import { ContractorLink } from '../../record-links.tsx'
import { Status } from '../../status.tsx'
import type { Column } from '../../table.tsx'
import { whyUnpaid } from './payout-list.ts'

/** The columns of a payout: its contractor, amount and status, and the reason if it failed. */
export const payoutColumns = (network: string, now: Date): Column<PayoutLine>[] => [
  {
    head: 'Contractor',
    cell: (payout) => (
      <span className="font-medium">
        <ContractorLink id={payout.contractorId} name={payout.contractor} />
      </span>
    ),
    beneath: (payout) => <p className="max-w-prose text-xs text-soft">{whyUnpaid(payout, now)}</p>,
  },
  { head: 'Status', cell: (payout) => <Status of="payout" is={payoutState(payout, now)} /> },
  {
    head: 'Account',
    from: 'lg',
    isRepeated: true,
    cell: ({ address }) => (address ? <Address value={address} network={network} /> : '–'),
  },
  {
    head: 'Transaction',
    from: 'md',
    isRepeated: true,
    cell: ({ ledgerHash, innerHash }) => {
      if (ledgerHash) return <TransactionHash hash={ledgerHash} network={network} />
      return innerHash ? <InnerHash hash={innerHash} /> : '–'
    },
  },
  {
    head: 'Paid',
    from: 'sm',
    isRepeated: true,
    cell: ({ paidAt }) => (paidAt ? <Moment at={paidAt} now={now} /> : '–'),
  },
]

/** The hash of a transfer that was not applied. */
function InnerHash({ hash }: { hash: string }) {
  return (
    <span className="text-faint">
      <Hash value={hash} /> <span className="text-xs">inner</span>
    </span>
  )
}
