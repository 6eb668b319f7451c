import type { Metadata } from 'next'
import { readFilters } from '#lib/dashboard/filters.ts'
import { listOrganisations, ORGANISATION_FILTERS, type OrganisationLine } from '#lib/dashboard/organisations.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { Moment } from '../figures.tsx'
import { BY_TIME } from '../list-display.ts'
import { ListView } from '../list-view.tsx'
import { addressOf, readQuery } from '../query.ts'
import { OrganisationLink, User } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { Sign } from '../status.tsx'
import type { Column } from '../table.tsx'
import { Count } from './count.tsx'
import { ORGANISATION_LIST } from './organisation-list.ts'

export const metadata: Metadata = { title: 'Organisations' }

/** All organisations with the numbers of their records. */
export default async function OrganisationsPage({ searchParams }: PageProps<'/organisations'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/organisations', query))
  const { database, settings, now } = service
  const network = settings.network.name
  const { filters, unknown } = readFilters(ORGANISATION_FILTERS, query)
  const list = await readIfReachable(database, (db) => listOrganisations(db, filters, query, now()))
  return (
    <ListView
      here="/organisations"
      title="Organisations"
      network={network}
      path="/organisations"
      now={now()}
      query={query}
      list={list}
      nouns={['organisation', 'organisations']}
      filters={filters}
      unknown={unknown}
      names={{}}
      sorts={BY_TIME}
      csv={[{ list: ORGANISATION_LIST, of: 'These organisations' }]}
      columns={columnsFor(network, now())}
      keyOf={({ id }) => id}
      empty={
        <>
          <strong>No organisations yet</strong>
          <p>The first contractor, batch or name of an employer founds one.</p>
        </>
      }
    />
  )
}

const columnsFor = (network: string, now: Date): Column<OrganisationLine>[] => [
  {
    head: 'Organisation',
    isName: true,
    cell: ({ id, name }) => (
      <span className="font-medium">
        <OrganisationLink id={id} name={name} />
      </span>
    ),
  },
  {
    head: 'Users',
    from: 'md',
    isRepeated: true,
    cell: ({ users }) =>
      users.length === 0
        ? '–'
        : users.map((user) => (
            <span key={user.sub} className="block [overflow-wrap:anywhere]">
              <User {...user} network={network} />
            </span>
          )),
  },
  {
    head: 'Contractors',
    from: 'sm',
    isRepeated: true,
    isNumber: true,
    cell: ({ id, contractors }) => <Count id={id} count={contractors} path="/contractors" />,
  },
  {
    head: 'Batches',
    from: 'sm',
    isRepeated: true,
    isNumber: true,
    cell: ({ id, batches }) => <Count id={id} count={batches} path="/batches" />,
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
  },
  {
    head: 'Last paid',
    from: 'xl',
    isRepeated: true,
    cell: ({ lastPaidAt }) => (lastPaidAt ? <Moment at={lastPaidAt} now={now} /> : 'Never'),
  },
  { head: 'Created', from: 'xl', isRepeated: true, cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
]
