import Link from 'next/link'
import type { RefusalLine } from '#lib/dashboard/refusals.ts'
import { REFUSALS } from '#lib/dashboard/transfers.ts'
import { fileColumn, organisationColumn, timeColumn } from '../columns.tsx'
import { Address, Hash } from '../hash.tsx'
import type { ListDisplay } from '../list-display.ts'
import { addressOf } from '../query.ts'

/** The refused transfers, in a tab of the page of transfers: the reason first. */
export const REFUSAL_LIST: ListDisplay<typeof REFUSALS.filters, RefusalLine> = {
  records: REFUSALS,
  name: 'refusals',
  here: '/transfers',
  title: 'Transfers',
  nouns: ['refusal', 'refusals'],
  columns: [
    timeColumn('Refused', ({ createdAt }) => createdAt),
    {
      head: 'Reason',
      cell: ({ words, reason }) => (
        <>
          {words}
          <div>
            <Link
              href={addressOf('/transfers', { view: 'refused', reason })}
              prefetch={false}
              title="All refusals for this reason"
              className="inline-block min-h-6 text-[0.8125rem] leading-6 text-soft underline-offset-4 hover:text-accent hover:underline"
            >
              <code>{reason}</code>
            </Link>
          </div>
        </>
      ),
      value: ({ words }) => words,
    },
    fileColumn('Code', ({ reason }) => reason),
    organisationColumn({ from: 'lg', isRepeated: true }),
    {
      head: 'Account',
      from: 'sm',
      isRepeated: true,
      cell: ({ account }, { network }) => <Address value={account} network={network} />,
      value: ({ account }) => account,
    },
    {
      head: 'Inner hash',
      from: 'md',
      isRepeated: true,
      cell: ({ innerHash }) => <Hash value={innerHash} />,
      value: ({ innerHash }) => innerHash,
    },
  ],
  isOneTab: true,
  empty: () => (
    <>
      <strong>No transfers were refused</strong>
      <p>Transfers that the sponsor’s policy, quotas or float do not allow are listed here with the reason.</p>
    </>
  ),
}
