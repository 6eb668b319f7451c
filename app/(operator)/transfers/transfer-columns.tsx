import type { Route } from 'next'
import Link from 'next/link'
import { explainTransfer } from '#lib/operator/explanation.ts'
import type { TransferLine } from '#lib/operator/transfers.ts'
import { formatUnits } from '#lib/text/money.ts'
import { between, Moment } from '../figures.tsx'
import { Hash } from '../hash.tsx'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { Hashes } from './hashes.tsx'

/** How a transfer is listed. What a narrow page has no column for stands in the first one. */
export const transferColumns = (network: string, now: Date): Column<TransferLine>[] => [
  {
    head: 'Accepted',
    cell: (transfer) => (
      <>
        <Moment at={transfer.createdAt} now={now} />
        <div className="md:hidden">
          <Parties transfer={transfer} />
          <Payout transfer={transfer} />
        </div>
        <details className="mt-0.5 lg:hidden">
          <summary className="w-fit py-0.5 text-xs text-soft">Hashes</summary>
          <Hashes transfer={transfer} network={network} />
        </details>
      </>
    ),
  },
  {
    head: 'From → to',
    from: 'md',
    cell: (transfer) => (
      <>
        <Parties transfer={transfer} />
        <div className="xl:hidden">
          <Payout transfer={transfer} />
        </div>
      </>
    ),
  },
  { head: 'Pays', from: 'xl', cell: (transfer) => (transfer.batch ? <Payout transfer={transfer} /> : '–') },
  {
    head: 'Result',
    cell: (transfer) => {
      const why = explainTransfer(transfer)
      return (
        <>
          <Status of="transfer" is={transfer.status} />
          {transfer.settledAt && transfer.status === 'success' && (
            <span className="ml-2 text-xs whitespace-nowrap text-faint max-sm:hidden">
              {between(transfer.createdAt, transfer.settledAt)}
            </span>
          )}
          {why && <p className="max-w-60 text-xs text-soft">{why}</p>}
          <p className="text-xs text-faint sm:hidden">
            {transfer.feeCharged === null ? 'not charged' : `${formatUnits(transfer.feeCharged)} XLM`}
            <br />
            {formatUnits(transfer.bid)} bid
          </p>
        </>
      )
    },
  },
  { head: 'Hashes', from: 'lg', cell: (transfer) => <Hashes transfer={transfer} network={network} /> },
  {
    head: 'Charged, XLM',
    from: 'sm',
    isNumber: true,
    cell: ({ feeCharged, bid }) => (
      <>
        {feeCharged === null ? '–' : formatUnits(feeCharged)}
        <div className="text-xs whitespace-nowrap text-faint">{formatUnits(bid)} bid</div>
      </>
    ),
  },
]

function Parties({ transfer: { account, recipient, quotaAccount } }: { transfer: TransferLine }) {
  return (
    <>
      <Hash value={account} />{' '}
      <span className="whitespace-nowrap">
        <span className="text-faint">→</span> <Hash value={recipient} />
      </span>
      {quotaAccount && (
        <div className="text-xs text-faint">
          relay, for <Hash value={quotaAccount} />
        </div>
      )}
    </>
  )
}

/** Whom it pays, and the batch of that payout, if it is for one. */
function Payout({ transfer: { batch, batchName, contractor } }: { transfer: TransferLine }) {
  if (!batch) return null
  return (
    <div className="max-w-56 leading-snug [overflow-wrap:anywhere]">
      {contractor}
      <div className="text-xs text-soft">
        <Link
          href={`/batches/${batch}` as Route}
          prefetch={false}
          className="underline underline-offset-4 hover:text-accent"
        >
          {batchName}
        </Link>
      </div>
    </div>
  )
}
