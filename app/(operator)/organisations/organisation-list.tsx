import { ORGANISATIONS, type OrganisationLine } from '#lib/dashboard/organisations.ts'
import type { Range } from '#lib/dashboard/traffic.ts'
import { formatUnits } from '#lib/text/money.ts'
import { fileColumn, linkColumn, timeColumn } from '../columns.tsx'
import { BY_TIME, type ListDisplay } from '../list-display.ts'
import { OrganisationLink, User } from '../record-links.tsx'
import { Sign } from '../status.tsx'
import type { Column } from '../table.tsx'
import { Count } from './count.tsx'
import { describeFees } from './fees.tsx'

/** The words of the ranges, in a heading and in a file. */
const WORDS = { '24h': ['24 h', '24 hours'], '30d': ['30 days', '30 days'] } as const

const costColumns = (range: Range): Column<OrganisationLine>[] => {
  const [short, long] = WORDS[range]
  return [
    fileColumn(`Transfers, ${long}`, ({ costs }) => costs[range].transfers),
    fileColumn(`Failed, ${long}`, ({ costs }) => costs[range].failed),
    fileColumn(`Fees of ${long}, XLM`, ({ costs }) => formatUnits(costs[range].fees)),
    {
      head: `Fees, ${short}`,
      from: 'md',
      isRepeated: true,
      isNumber: true,
      cell: ({ costs }) => describeFees(costs[range], 4),
    },
  ]
}

/** All organisations with the numbers of their records. */
export const ORGANISATION_LIST: ListDisplay<typeof ORGANISATIONS.filters, OrganisationLine> = {
  records: ORGANISATIONS,
  name: 'organisations',
  here: '/organisations',
  title: 'Organisations',
  nouns: ['organisation', 'organisations'],
  sorts: [...BY_TIME, ['24h', 'Highest fees, 24 h'], ['30d', 'Highest fees, 30 days']],
  columns: [
    {
      ...linkColumn('Organisation', OrganisationLink, (organisation) => organisation),
      isName: true,
      beneath: ({ users }, { network }) =>
        users.map((user) => (
          <p key={user.sub} className="text-xs text-soft [overflow-wrap:anywhere]">
            <User {...user} network={network} />
          </p>
        )),
      value: ({ name }) => name,
    },
    fileColumn('Users', ({ users }) => users.map(({ email, sub }) => email ?? sub).join(', ')),
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
          <Count id={id} count={started} path="/batches" status="started" />
          {stalled > 0 && (
            <span className="block text-xs">
              <Sign tone="late">{stalled} stalled</Sign>
            </span>
          )}
        </>
      ),
      value: ({ started }) => started,
    },
    fileColumn('Stalled', ({ stalled }) => stalled),
    ...(['24h', '30d'] as const).flatMap((range) => costColumns(range)),
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
