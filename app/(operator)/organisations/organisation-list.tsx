import { ORGANISATIONS, type OrganisationLine } from '#lib/dashboard/organisations.ts'
import { fileColumn, linkColumn, timeColumn } from '../columns.tsx'
import type { ListDisplay } from '../list-display.ts'
import { OrganisationLink, User } from '../record-links.tsx'
import { Sign } from '../status.tsx'
import { Count } from './count.tsx'

/** All organisations with the numbers of their records. */
export const ORGANISATION_LIST: ListDisplay<typeof ORGANISATIONS.filters, OrganisationLine> = {
  records: ORGANISATIONS,
  name: 'organisations',
  here: '/organisations',
  title: 'Organisations',
  nouns: ['organisation', 'organisations'],
  columns: [
    {
      ...linkColumn('Organisation', OrganisationLink, (organisation) => organisation),
      isName: true,
      value: ({ name }) => name,
    },
    {
      head: 'Users',
      from: 'md',
      isRepeated: true,
      cell: ({ users }, { network }) =>
        users.length === 0
          ? '–'
          : users.map((user) => (
              <span key={user.sub} className="block [overflow-wrap:anywhere]">
                <User {...user} network={network} />
              </span>
            )),
      value: ({ users }) => users.map(({ email, sub }) => email ?? sub).join(', '),
    },
    {
      head: 'Contractors',
      from: 'sm',
      isRepeated: true,
      isNumber: true,
      cell: ({ id, contractors }) => <Count id={id} count={contractors} path="/contractors" />,
      value: ({ contractors }) => contractors,
    },
    {
      head: 'Batches',
      from: 'sm',
      isRepeated: true,
      isNumber: true,
      cell: ({ id, batches }) => <Count id={id} count={batches} path="/batches" />,
      value: ({ batches }) => batches,
    },
    {
      head: 'In progress',
      from: 'sm',
      isRepeated: true,
      isNumber: true,
      cell: ({ id, started, stalled }) => (
        <>
          {stalled > 0 && (
            <span className="mr-3 text-xs">
              <Sign tone="late">{stalled} stalled</Sign>
            </span>
          )}
          <Count id={id} count={started} path="/batches" status="started" />
        </>
      ),
      value: ({ started }) => started,
    },
    fileColumn('Stalled', ({ stalled }) => stalled),
    timeColumn('Last paid', ({ lastPaidAt }) => lastPaidAt, { from: 'xl', isRepeated: true, none: 'Never' }),
    timeColumn('Created', ({ createdAt }) => createdAt, { from: 'xl', isRepeated: true }),
    fileColumn('Organisation id', ({ id }) => id),
  ],
  empty: () => (
    <>
      <strong>No organisations yet</strong>
      <p>The first contractor, batch or name of an employer founds one.</p>
    </>
  ),
}
