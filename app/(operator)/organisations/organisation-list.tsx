import { ORGANISATIONS, type OrganisationLine } from '#lib/dashboard/organisations.ts'
import type { Range } from '#lib/dashboard/traffic.ts'
import { groupDigits, xlm } from '#lib/text/figures.ts'
import { formatUnits } from '#lib/text/money.ts'
import { fileColumn, linkColumn, timeColumn } from '../columns.tsx'
import { BY_TIME, type ListDisplay } from '../list-display.ts'
import { addressOf } from '../query.ts'
import { PageLink, User } from '../record-links.tsx'
import { Sign } from '../status.tsx'
import type { Column } from '../table.tsx'

/** A number that is a column from tablets on. */
const NUMBER = { from: 'sm', isNumber: true } as const

const costColumns = (range: Range, short: string, long: string): Column<OrganisationLine>[] => [
  fileColumn(`Transfers, ${long}`, ({ costs }) => costs[range].transfers),
  fileColumn(`Failed, ${long}`, ({ costs }) => costs[range].failed),
  fileColumn(`Fees of ${long}, XLM`, ({ costs }) => formatUnits(costs[range].fees)),
  { ...NUMBER, head: `Fees, ${short}`, from: 'md', cell: ({ costs }) => <Fees of={costs[range]} places={4} /> },
]

const countColumn = (head: 'Contractors' | 'Batches', of: 'contractors' | 'batches'): Column<OrganisationLine> => ({
  ...NUMBER,
  head,
  cell: (organisation) => <Count id={organisation.id} count={organisation[of]} path={`/${of}`} />,
  value: (organisation) => organisation[of],
})

/** All organisations with the numbers of their records. */
export const ORGANISATION_LIST: ListDisplay<typeof ORGANISATIONS.filters, OrganisationLine> = {
  records: ORGANISATIONS,
  here: '/organisations',
  title: 'Organisations',
  nouns: ['organisation', 'organisations'],
  sorts: [...BY_TIME, ['24h', 'Highest fees, 24 h'], ['30d', 'Highest fees, 30 days']],
  columns: [
    {
      ...linkColumn('Organisation', 'organisation', (organisation) => organisation),
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
    countColumn('Contractors', 'contractors'),
    countColumn('Batches', 'batches'),
    {
      ...NUMBER,
      head: 'In progress',
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
    ...costColumns('24h', '24 h', '24 hours'),
    ...costColumns('30d', '30 days', '30 days'),
    timeColumn('Last paid', ({ lastPaidAt }) => lastPaidAt, { from: 'xl', none: 'Never' }),
    timeColumn('Created', ({ createdAt }) => createdAt, { from: 'xl' }),
    fileColumn('Organisation id', ({ id }) => id),
  ],
  empty: () => ({
    title: 'No organisations yet',
    children: 'The first contractor, batch, webhook or name of an employer founds one.',
  }),
}

const COUNT = 'inline-block min-h-6 min-w-6 underline underline-offset-4 hover:text-accent'

/** A count that links to the records. */
export function Count({ id, count, path, status = '' }: { id: string; count: number; path: string; status?: string }) {
  if (count === 0) return <span className="text-faint">0</span>
  return <PageLink href={addressOf(path, { organisation: id, status })} name={groupDigits(count)} className={COUNT} />
}

/**
 * What the sponsor was charged for an organisation's transfers of a range, and how many there were.
 * @param places how many decimals are shown at most; all of them by default
 */
export function Fees({ of, places }: { of: OrganisationLine['costs']['24h']; places?: number }) {
  const { transfers, failed, fees } = of
  if (transfers === 0) return '–'
  const counts = [`${groupDigits(transfers)} ${transfers === 1 ? 'transfer' : 'transfers'}`]
  if (failed > 0) counts.push(`${groupDigits(failed)} failed`)
  return (
    <>
      <span className="whitespace-nowrap tabular-nums">{xlm(fees, places)} XLM</span>
      {counts.map((count) => (
        <span key={count} className="block text-xs whitespace-nowrap text-faint">
          {count}
        </span>
      ))}
    </>
  )
}
