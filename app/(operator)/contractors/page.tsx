import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { type ContractorLine, contractorStatusOf, listAllContractors } from '#lib/operator/contractors.ts'
import { readIfReachable } from '#lib/operator/reading.ts'
import { Moment } from '../figures.tsx'
import { Frame } from '../frame.tsx'
import { Hash } from '../hash.tsx'
import { addressOf, Pager, pageOf, readSearch, Tabs } from '../listing.tsx'
import { requireOperator } from '../require-operator.ts'
import { Sign, Status } from '../status.tsx'
import { type Column, Table, Unreachable } from '../table.tsx'

export const metadata: Metadata = { title: 'Contractors' }

const TABS = [
  ['', 'All'],
  ['invited', 'Invited'],
  ['onboarding', 'Onboarding'],
  ['ready', 'Ready'],
  ['inactive', 'Inactive'],
] as const

/** The directories of all organisations. */
export default async function ContractorsPage({ searchParams }: PageProps<'/contractors'>) {
  const query = await readSearch(searchParams)
  const { database, settings, now } = await requireOperator(addressOf('/contractors', query))
  const status = contractorStatusOf(query.status ?? '')
  const found = await readIfReachable(database, (db) => listAllContractors(db, { status }, pageOf(query)))
  return (
    <Frame here="/contractors" title="Contractors" network={settings.network.name}>
      <Tabs label="Status" path="/contractors" name="status" chosen={status ?? ''} tabs={TABS} />
      {found ? (
        <>
          <Table
            caption="Contractors, newest first"
            columns={columnsAt(now())}
            rows={found.items}
            keyOf={({ id }) => id}
            empty={<NoContractors isFiltered={status !== undefined} />}
          />
          <Pager path="/contractors" query={query} next={found.next} />
        </>
      ) : (
        <Unreachable />
      )}
    </Frame>
  )
}

const columnsAt = (now: Date): Column<ContractorLine>[] => [
  {
    head: 'Contractor',
    cell: ({ name, email, organisationName }) => (
      <div className="min-w-0 [overflow-wrap:anywhere]">
        <div className="font-medium">{name}</div>
        {email && <div className="text-xs text-faint">{email}</div>}
        <div className="text-xs text-faint md:hidden">{organisationName}</div>
      </div>
    ),
  },
  {
    head: 'Organisation',
    from: 'md',
    cell: ({ organisationName }) => <span className="[overflow-wrap:anywhere]">{organisationName}</span>,
  },
  { head: 'Status', cell: ({ status }) => <Status of="contractor" is={status} /> },
  { head: 'Account', from: 'sm', isRepeated: true, cell: ({ address }) => (address ? <Hash value={address} /> : '–') },
  {
    head: 'On the ledger',
    from: 'md',
    isRepeated: true,
    cell: ({ address, isRegistered }) => {
      if (isRegistered) return <Sign tone="good">Registered</Sign>
      return <Sign tone="idle">{address ? 'Not registered' : 'No account yet'}</Sign>
    },
  },
  { head: 'Invite', from: 'lg', isRepeated: true, cell: ({ isLinked }) => (isLinked ? 'Accepted' : '–') },
  {
    head: 'Last paid',
    from: 'lg',
    isRepeated: true,
    cell: ({ lastPaidAt }) => (lastPaidAt ? <Moment at={lastPaidAt} now={now} /> : 'Never'),
  },
]

function NoContractors({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <strong>No contractor has this status</strong>
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
