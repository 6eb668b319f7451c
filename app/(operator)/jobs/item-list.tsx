import Link from 'next/link'
import type { ItemLine } from '#lib/dashboard/jobs.ts'
import { describeLineError } from '#lib/transfers/line-error.ts'
import { between } from '../figures.tsx'
import { Address, TransactionHash } from '../hash.tsx'
import { addressOf } from '../query.ts'
import { PayoutLink, TransferLink } from '../record-links.tsx'
import { Status } from '../status.tsx'

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
          <th scope="col" className="max-md:hidden">
            Channel
          </th>
          <th scope="col" className="max-lg:hidden">
            Recipient
          </th>
          <th scope="col" className="max-sm:hidden">
            Transfer
          </th>
          <th scope="col">Waited</th>
          <th scope="col">Settled in</th>
        </tr>
      </thead>
      <tbody className="[&_td]:py-1 [&_td]:pr-4 [&_td]:align-top [&_td:last-child]:pr-0">
        {items.map((item) => (
          <tr key={item.position}>
            <td>
              <span className="mr-2 text-faint">{item.position + 1}</span>
              <Status of="item" is={item.state} />
              {item.payout && (
                <div className="text-xs">
                  <PayoutLink id={item.payout} name="its payout" />
                </div>
              )}
              {item.error && item.state !== 'failed' && (
                <p className="text-xs text-bad">{describeLineError(item.error)}</p>
              )}
              {item.error && item.state === 'failed' && (
                <p className="text-xs text-bad">
                  <Link
                    href={addressOf('/jobs', { reason: item.error })}
                    prefetch={false}
                    className="inline-block min-h-6 underline-offset-4 hover:underline"
                  >
                    {describeLineError(item.error)}
                  </Link>
                </p>
              )}
              <div className="text-xs text-faint lg:hidden">
                to {item.recipient ? <Address value={item.recipient} network={network} /> : 'another channel'}
              </div>
              {item.channel && (
                <div className="text-xs text-faint md:hidden">
                  via <Address value={item.channel} network={network} />
                </div>
              )}
              <div className="sm:hidden">
                <Transfer item={item} network={network} />
              </div>
            </td>
            <td className="max-md:hidden">{item.channel ? <Address value={item.channel} network={network} /> : '–'}</td>
            <td className="max-lg:hidden">
              {item.recipient ? <Address value={item.recipient} network={network} /> : 'another channel'}
            </td>
            <td className="max-sm:hidden">
              <Transfer item={item} network={network} />
            </td>
            <td className="whitespace-nowrap">{item.sentAt ? between(item.queuedAt, item.sentAt) : '–'}</td>
            <td className="whitespace-nowrap">
              {item.sentAt && item.settledAt ? between(item.sentAt, item.settledAt) : '–'}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The record of the item's transfer, or a transaction that this service has no record of. */
function Transfer({ item: { transfer, hash }, network }: { item: ItemLine; network: string }) {
  if (transfer) return <TransferLink id={transfer} name={transfer.slice(0, 8)} />
  return hash ? <TransactionHash hash={hash} network={network} /> : '–'
}
