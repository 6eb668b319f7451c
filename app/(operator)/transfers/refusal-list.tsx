import type { RefusalLine } from '#lib/dashboard/refusals.ts'
import { REFUSALS } from '#lib/dashboard/transfers.ts'
import { fileColumn, organisationColumn, timeColumn } from '../columns.tsx'
import { Address, Hash } from '../hash.tsx'
import type { ListDisplay } from '../list-display.ts'
import { addressOf } from '../query.ts'
import { PageLink } from '../record-links.tsx'

const REASON =
  'inline-block min-h-6 text-[0.8125rem] leading-6 text-soft underline-offset-4 hover:text-accent hover:underline'

/** The refused transfers, in a tab of the page of transfers: the reason first. */
export const REFUSAL_LIST: ListDisplay<typeof REFUSALS.filters, RefusalLine> = {
  records: REFUSALS,
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
            <PageLink
              href={addressOf('/transfers', { view: 'refused', reason })}
              title="All refusals for this reason"
              className={REASON}
            >
              <code>{reason}</code>
            </PageLink>
          </div>
        </>
      ),
      value: ({ words }) => words,
    },
    fileColumn('Code', ({ reason }) => reason),
    organisationColumn({ from: 'lg' }),
    {
      head: 'Account',
      from: 'sm',
      cell: ({ account }, { network }) => <Address value={account} network={network} />,
      value: ({ account }) => account,
    },
    {
      head: 'Inner hash',
      from: 'md',
      cell: ({ innerHash }) => <Hash value={innerHash} />,
      value: ({ innerHash }) => innerHash,
    },
  ],
  isOneTab: true,
  empty: () => ({
    title: 'No transfers were refused',
    children: 'Transfers that the sponsor’s policy, quotas or float do not allow are listed here with the reason.',
  }),
}
