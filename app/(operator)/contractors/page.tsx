import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { CONTRACTOR_FILTERS, type ContractorLine, listContractors } from '#lib/dashboard/contractors.ts'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { Moment } from '../figures.tsx'
import { BY_TIME } from '../list-display.ts'
import { ListView } from '../list-view.tsx'
import { addressOf, readQuery } from '../query.ts'
import { ContractorLink, OrganisationLink } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { CONTRACTOR_LIST, inviteWords } from './contractor-list.ts'

export const metadata: Metadata = { title: 'Contractors' }

const TABS = [
  ['', 'All'],
  ['invited', 'Invited'],
  ['onboarding', 'Onboarding'],
  ['ready', 'Ready'],
  ['inactive', 'Inactive'],
] as const

/** The contractors of all organisations. */
export default async function ContractorsPage({ searchParams }: PageProps<'/contractors'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/contractors', query))
  const { database, settings, now } = service
  const { filters, unknown } = readFilters(CONTRACTOR_FILTERS, query)
  const data = await readIfReachable(database, async (db) => ({
    list: await listContractors(db, filters, query),
    names: await findFilterNames(db, filters),
  }))
  return (
    <ListView
      here="/contractors"
      title="Contractors"
      network={settings.network.name}
      path="/contractors"
      now={now()}
      query={query}
      list={data?.list}
      nouns={['contractor', 'contractors']}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      sorts={BY_TIME}
      tabs={{ label: 'Status', name: 'status', tabs: TABS }}
      csv={[{ list: CONTRACTOR_LIST, of: 'These contractors' }]}
      columns={columnsAt(now())}
      keyOf={({ id }) => id}
      empty={<NoContractors />}
    />
  )
}

const columnsAt = (now: Date): Column<ContractorLine>[] => [
  {
    head: 'Contractor',
    isName: true,
    cell: ({ id, name }) => (
      <span className="font-medium">
        <ContractorLink id={id} name={name} />
      </span>
    ),
    beneath: ({ email }) =>
      email && (
        <div className="text-xs text-soft xl:hidden">
          <Email email={email} />
        </div>
      ),
  },
  {
    head: 'Organisation',
    from: 'lg',
    isRepeated: true,
    isName: true,
    cell: ({ organisation, organisationName }) => <OrganisationLink id={organisation} name={organisationName} />,
  },
  {
    head: 'Email',
    from: 'xl',
    cell: ({ email }) => (email ? <Email email={email} /> : '–'),
  },
  { head: 'Status', cell: ({ status }) => <Status of="contractor" is={status} /> },
  {
    head: 'Invite',
    from: 'lg',
    isRepeated: true,
    cell: (contractor) => <span className="xl:whitespace-nowrap">{inviteWords(contractor, now)}</span>,
  },
  {
    head: 'Last paid',
    from: 'xl',
    isRepeated: true,
    cell: ({ lastPaidAt }) => (lastPaidAt ? <Moment at={lastPaidAt} now={now} isShort /> : 'Never'),
  },
]

/** A full email address. If it is too long for a line, it breaks before the `@`. */
function Email({ email }: { email: string }) {
  const at = email.lastIndexOf('@')
  return (
    <span className="inline-block [overflow-wrap:anywhere] min-[90rem]:min-w-74">
      {email.slice(0, at)}
      <wbr />
      {email.slice(at)}
    </span>
  )
}

function NoContractors() {
  return (
    <>
      <strong>No contractors yet</strong>
      <p>
        An employer adds them with <code>POST /contractors</code>, or many at once with{' '}
        <code>POST /contractors/bulk</code>; see the{' '}
        <Link href={'/docs' as Route} prefetch={false}>
          API reference
        </Link>
        .
      </p>
    </>
  )
}
