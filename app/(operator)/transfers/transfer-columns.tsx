import type { Route } from 'next'
import Link from 'next/link'
import { formatUnits } from '#lib/money.ts'
import { explainTransfer } from '#lib/operator/explanation.ts'
import type { TransferLine } from '#lib/operator/transfers.ts'
import { between, Moment } from '../figures.tsx'
import { Hash, TransactionHash } from '../hash.tsx'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'

/** How a transfer is listed. */
export const transferColumns = (network: string, now: Date): Column<TransferLine>[] => [
  {
    head: 'Accepted',
    cell: (transfer) => (
      <>
        <Moment at={transfer.createdAt} now={now} />
        <div className="md:hidden">
          <Hash value={transfer.account} />
        </div>
      </>
    ),
  },
  {
    head: 'From → to',
    from: 'md',
    cell: ({ account, recipient, quotaAccount }) => (
      <>
        <Hash value={account} /> <span className="text-faint">→</span> <Hash value={recipient} />
        {quotaAccount && (
          <div className="text-xs text-faint">
            relay, for <Hash value={quotaAccount} />
          </div>
        )}
      </>
    ),
  },
  {
    head: 'Result',
    cell: (transfer) => {
      const why = explainTransfer(transfer)
      return (
        <>
          <Status of="transfer" is={transfer.status} />
          {transfer.settledAt && transfer.status === 'success' && (
            <span className="ml-2 text-xs text-faint max-sm:hidden">
              {between(transfer.createdAt, transfer.settledAt)}
            </span>
          )}
          {why && <p className="max-w-60 text-xs text-soft">{why}</p>}
          {transfer.feeCharged !== null && (
            <p className="text-xs text-faint sm:hidden">{formatUnits(transfer.feeCharged)} XLM charged</p>
          )}
        </>
      )
    },
  },
  {
    head: 'Hashes: outer, inner',
    from: 'lg',
    cell: (transfer) => (
      <div className="flex flex-col">
        <StandingHash hash={transfer.outerHash} {...{ transfer, network }} />
        <span className="text-faint">
          <StandingHash hash={transfer.innerHash} {...{ transfer, network }} />
        </span>
      </div>
    ),
  },
  {
    head: 'Payout of',
    from: 'xl',
    cell: ({ batch, batchName }) =>
      batch ? (
        <Link
          href={`/batches/${batch}` as Route}
          prefetch={false}
          className="[overflow-wrap:anywhere] underline-offset-4 hover:text-accent hover:underline"
        >
          {batchName}
        </Link>
      ) : (
        '–'
      ),
  },
  {
    head: 'Bid, XLM',
    from: 'xl',
    isNumber: true,
    cell: ({ bid }) => <span className="text-soft">{formatUnits(bid)}</span>,
  },
  {
    head: 'Charged, XLM',
    from: 'sm',
    isNumber: true,
    cell: ({ feeCharged }) => (feeCharged === null ? '–' : formatUnits(feeCharged)),
  },
]

/** Only what stands on the ledger has a page at the explorer. */
function StandingHash({ hash, transfer, network }: { hash: string; transfer: TransferLine; network: string }) {
  return transfer.ledger === null ? <Hash value={hash} /> : <TransactionHash hash={hash} network={network} />
}
