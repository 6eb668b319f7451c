import Link from 'next/link'
import type { RefusalLine } from '#lib/dashboard/refusals.ts'
import { Moment } from '../figures.tsx'
import { Address, Hash } from '../hash.tsx'
import { addressOf } from '../query.ts'
import { OrganisationLink } from '../record-links.tsx'
import type { Column } from '../table.tsx'

/** How a refused transfer is listed: the reason first. */
export const refusalColumns = (network: string, now: Date): Column<RefusalLine>[] => [
  { head: 'Refused', cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
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
  },
  {
    head: 'Organisation',
    from: 'lg',
    isRepeated: true,
    cell: ({ organisation, organisationName }) =>
      organisation === null || organisationName === null ? (
        '–'
      ) : (
        <OrganisationLink id={organisation} name={organisationName} />
      ),
  },
  {
    head: 'Account',
    from: 'sm',
    isRepeated: true,
    cell: ({ account }) => <Address value={account} network={network} />,
  },
  { head: 'Inner hash', from: 'md', isRepeated: true, cell: ({ innerHash }) => <Hash value={innerHash} /> },
]
