import type { RefusalLine } from '#lib/dashboard/refusals.ts'
import { Moment } from '../figures.tsx'
import { Address, Hash } from '../hash.tsx'
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
          <code className="text-[0.8125rem] text-soft">{reason}</code>
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
