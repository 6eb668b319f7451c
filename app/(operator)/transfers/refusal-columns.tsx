import type { RefusalLine } from '#lib/operator/refusals.ts'
import { Moment } from '../figures.tsx'
import { Address, Hash } from '../hash.tsx'
import { OrganisationLink } from '../record-links.tsx'
import type { Column } from '../table.tsx'

/** How a refused transfer is listed: the reason first. */
export const refusalColumns = (network: string, now: Date): Column<RefusalLine>[] => [
  { head: 'Refused', cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
  {
    head: 'Reason',
    cell: ({ words, reason, account, innerHash }) => (
      <>
        {words}
        <div>
          <code className="text-[0.8125rem] text-soft">{reason}</code>
        </div>
        <div className="mt-0.5 text-xs text-faint sm:hidden">
          account <Address value={account} network={network} />
        </div>
        <div className="text-xs text-faint md:hidden">
          inner hash <Hash value={innerHash} />
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
        <OrganisationLink id={organisation} name={organisationName} path="/transfers" />
      ),
  },
  { head: 'Account', from: 'sm', cell: ({ account }) => <Address value={account} network={network} /> },
  { head: 'Inner hash', from: 'md', cell: ({ innerHash }) => <Hash value={innerHash} /> },
]
