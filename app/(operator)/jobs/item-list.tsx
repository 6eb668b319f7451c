import type { ReactNode } from 'react'
import type { ItemLine } from '#lib/dashboard/jobs.ts'
import { describeLineError } from '#lib/transfers/line-error.ts'
import { between } from '../figures.tsx'
import { Address, TransactionHash } from '../hash.tsx'
import { addressOf } from '../query.ts'
import { PageLink, RecordLink } from '../record-links.tsx'
import { Status } from '../status.tsx'

interface ItemColumn {
  head: string
  cell: (item: ItemLine, network: string) => ReactNode
  /** the classes that hide the column on narrow pages, and its value below the first column on wide ones */
  hidden?: readonly [column: string, beneath: string]
  /** the words before the value below the first column */
  words?: string
}

const COLUMNS: readonly ItemColumn[] = [
  {
    head: 'Channel',
    cell: ({ channel }, network) => channel && <Address value={channel} network={network} />,
    hidden: ['max-md:hidden', 'text-xs text-faint md:hidden'],
    words: 'via ',
  },
  {
    head: 'Recipient',
    cell: ({ recipient }, network) => (recipient ? <Address value={recipient} network={network} /> : 'another channel'),
    hidden: ['max-lg:hidden', 'text-xs text-faint lg:hidden'],
    words: 'to ',
  },
  {
    head: 'Transfer',
    // A transaction that this service has no record of has only a hash.
    cell: ({ transfer, hash }, network) =>
      transfer ? (
        <RecordLink type="transfer" id={transfer} />
      ) : (
        hash && <TransactionHash value={hash} network={network} />
      ),
    hidden: ['max-sm:hidden', 'sm:hidden'],
  },
  { head: 'Waited', cell: ({ queuedAt, sentAt }) => sentAt && between(queuedAt, sentAt) },
  { head: 'Settled in', cell: ({ sentAt, settledAt }) => sentAt && settledAt && between(sentAt, settledAt) },
]

/**
 * The transfers of a job: the channel that pays, how long each waited and how long the ledger took. On the first
 * page, up to 20 failed or unknown ones come first.
 */
export function ItemList({ items, network }: { items: readonly ItemLine[]; network: string }) {
  return (
    <table className="w-full">
      <caption className="sr-only">
        Transfers of the job in order; on the first page, the failed ones come first
      </caption>
      <thead>
        <tr className="text-left text-xs text-faint [&_th]:pr-4 [&_th]:pb-1 [&_th]:font-medium [&_th]:whitespace-nowrap [&_th:last-child]:pr-0">
          <th scope="col">Transfer</th>
          {COLUMNS.map(({ head, hidden }) => (
            <th key={head} scope="col" className={hidden?.[0]}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody className="[&_td]:py-1 [&_td]:pr-4 [&_td]:align-top [&_td:last-child]:pr-0">
        {items.map((item) => (
          <tr key={item.position}>
            <td>
              <Item item={item} network={network} />
            </td>
            {COLUMNS.map(({ head, cell, hidden }) => (
              <td key={head} className={hidden?.[0] ?? 'whitespace-nowrap'}>
                {cell(item, network) ?? '–'}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The number and the state of an item, and what is a column on wider pages. */
function Item({ item, network }: { item: ItemLine; network: string }) {
  const { position, state, payout, error } = item
  const words = error && describeLineError(error)
  return (
    <>
      <span className="mr-2 text-faint">{position + 1}</span>
      <Status is={state} />
      {payout && (
        <div className="text-xs">
          <RecordLink type="payout" id={payout} name="its payout" />
        </div>
      )}
      {error && (
        <p className="text-xs text-bad">
          {state === 'failed' ? <PageLink href={addressOf('/jobs', { reason: error })} name={words ?? ''} /> : words}
        </p>
      )}
      {COLUMNS.map(({ head, cell, hidden, words = '' }) => {
        const value = hidden && cell(item, network)
        return (
          value && (
            <div key={head} className={hidden[1]}>
              {words}
              {value}
            </div>
          )
        )
      })}
    </>
  )
}
