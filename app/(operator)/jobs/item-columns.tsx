import type { ItemLine } from '#lib/dashboard/jobs.ts'
import { describeLineError } from '#lib/transfers/line-error.ts'
import { between } from '../figures.tsx'
import { Address, TransactionHash } from '../hash.tsx'
import { addressOf } from '../query.ts'
import { PageLink, RecordLink } from '../record-links.tsx'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'

/** The transfers of a job: the channel that pays, how long each waited and how long the ledger took. */
export const ITEM_COLUMNS: readonly Column<ItemLine>[] = [
  {
    head: 'Transfer',
    cell: ({ position, state }) => (
      <>
        <span className="mr-2 text-faint">{position + 1}</span>
        <Status is={state} />
      </>
    ),
    beneath: (item) => <Details {...item} />,
  },
  {
    head: 'Channel',
    from: 'md',
    cell: ({ channel }, { network }) => (channel ? <Address value={channel} network={network} /> : '–'),
  },
  {
    head: 'Recipient',
    from: 'lg',
    cell: ({ recipient }, { network }) =>
      recipient ? <Address value={recipient} network={network} /> : 'another channel',
  },
  {
    head: 'Record',
    from: 'sm',
    cell: ({ transfer, hash }, { network }) => {
      if (transfer) return <RecordLink type="transfer" id={transfer} />
      // This service has no record of the transaction.
      return hash ? <TransactionHash value={hash} network={network} /> : '–'
    },
  },
  { head: 'Waited', from: 'sm', cell: ({ queuedAt, sentAt }) => (sentAt ? between(queuedAt, sentAt) : '–') },
  { head: 'Settled in', cell: ({ sentAt, settledAt }) => (sentAt && settledAt ? between(sentAt, settledAt) : '–') },
]

/** The payout of an item, and why it is not paid. */
function Details({ payout, error, state }: ItemLine) {
  const words = error === null ? '' : describeLineError(error)
  return (
    <>
      {payout && (
        <div className="text-xs">
          <RecordLink type="payout" id={payout} name="its payout" />
        </div>
      )}
      {error && (
        <p className="text-xs text-bad">
          {state === 'failed' ? <PageLink href={addressOf('/jobs', { reason: error })} name={words} /> : words}
        </p>
      )}
    </>
  )
}
