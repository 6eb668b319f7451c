import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { CONTRACTOR_FILTERS, type ContractorLine, listContractors } from '#lib/dashboard/contractors.ts'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { Moment } from '../figures.tsx'
import { Address } from '../hash.tsx'
import { BY_TIME, ListView } from '../list-view.tsx'
import { addressOf, readQuery } from '../query.ts'
import { ContractorLink, OrganisationLink } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { Sign, Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { CONTRACTOR_LIST, inviteWords, registrationWords } from './contractor-list.ts'

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
  const network = settings.network.name
  const data = await readIfReachable(database, async (db) => ({
    list: await listContractors(db, filters, query),
    names: await findFilterNames(db, filters),
  }))
  return (
    <ListView
      here="/contractors"
      title="Contractors"
      network={network}
      path="/contractors"
      query={query}
      list={data?.list}
      nouns={['contractor', 'contractors']}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      sorts={BY_TIME}
      tabs={{ label: 'Status', name: 'status', tabs: TABS }}
      csv={[{ list: CONTRACTOR_LIST, of: 'These contractors' }]}
      columns={columnsFor(network, now())}
      keyOf={({ id }) => id}
      empty={<NoContractors />}
    />
  )
}

const columnsFor = (network: string, now: Date): Column<ContractorLine>[] => [
  {
    head: 'Contractor',
    cell: ({ id, name }) => (
      <span className="font-medium">
        <ContractorLink id={id} name={name} />
      </span>
    ),
    beneath: ({ email, organisation, organisationName }) => (
      <div className="text-xs text-soft">
        {email && <Email email={email} />}
        <OrganisationLink id={organisation} name={organisationName} />
      </div>
    ),
  },
  { head: 'Status', cell: ({ status }) => <Status of="contractor" is={status} /> },
  {
    head: 'Account',
    from: 'sm',
    isRepeated: true,
    cell: ({ address }) => (address ? <Address value={address} network={network} /> : '–'),
  },
  {
    head: 'On the ledger',
    from: 'md',
    isRepeated: true,
    cell: (contractor) => <Sign tone={contractor.isRegistered ? 'good' : 'idle'}>{registrationWords(contractor)}</Sign>,
  },
  {
    head: 'Invite',
    from: 'lg',
    isRepeated: true,
    cell: (contractor) => inviteWords(contractor, now),
  },
  {
    head: 'Last paid',
    from: 'xl',
    isRepeated: true,
    cell: ({ lastPaidAt }) => (lastPaidAt ? <Moment at={lastPaidAt} now={now} /> : 'Never'),
  },
]

/** A full email address. If it is too long for a line, it breaks before the `@`. */
function Email({ email }: { email: string }) {
  const at = email.lastIndexOf('@')
  return (
    <div className="[overflow-wrap:anywhere]">
      {email.slice(0, at)}
      <wbr />
      {email.slice(at)}
    </div>
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
