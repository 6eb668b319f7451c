import type { Metadata } from 'next'
import { readIfReachable } from '#lib/operator/reading.ts'
import { listRefusals } from '#lib/operator/refusals.ts'
import { listTransfers, TRANSFER_VIEWS, type TransferView } from '#lib/operator/transfers.ts'
import type { Service } from '#lib/service.ts'
import { Frame } from '../frame.tsx'
import { addressOf, Pager, pageOf, type Query, readSearch, Tabs } from '../listing.tsx'
import { requireOperator } from '../require-operator.ts'
import { Table, Unreachable } from '../table.tsx'
import { RefusalTable } from './refusal-table.tsx'
import { SearchForm } from './search-form.tsx'
import { transferColumns } from './transfer-columns.tsx'

export const metadata: Metadata = { title: 'Transfers' }

const TABS = [
  ['', 'All'],
  ['open', 'In flight'],
  ['settled', 'Settled'],
  ['failed', 'Failed'],
  ['dead', 'Expired'],
  ['refused', 'Refused'],
] as const

/** The sponsor's ledger: what it has paid for, for whom, and what it has refused. */
export default async function TransfersPage({ searchParams }: PageProps<'/transfers'>) {
  const query = await readSearch(searchParams)
  const service = await requireOperator(addressOf('/transfers', query))
  const { view = '', search = '' } = query
  return (
    <Frame here="/transfers" title="Transfers" network={service.settings.network.name}>
      <Tabs label="Result" path="/transfers" name="view" chosen={view} tabs={TABS} query={{ search }} />
      {view === 'refused' ? (
        <Refused service={service} query={query} />
      ) : (
        <Accepted service={service} query={query} view={isView(view) ? view : 'all'} search={search.trim()} />
      )}
    </Frame>
  )
}

async function Refused({ service: { database, now }, query }: { service: Service; query: Query }) {
  const found = await readIfReachable(database, (db) => listRefusals(db, pageOf(query)))
  if (!found) return <Unreachable />
  return (
    <>
      <RefusalTable rows={found.items} now={now()} />
      <Pager path="/transfers" query={query} next={found.next} />
    </>
  )
}

interface AcceptedProps {
  service: Service
  query: Query
  view: TransferView
  search: string
}

async function Accepted({ service: { database, settings, now }, query, view, search }: AcceptedProps) {
  const found = await readIfReachable(database, (db) => listTransfers(db, { view, search }, pageOf(query)))
  if (!found) return <Unreachable />
  return (
    <>
      <SearchForm search={search} view={view === 'all' ? '' : view} />
      <Table
        caption="Sponsored transfers, newest first"
        columns={transferColumns(settings.network.name, now())}
        rows={found.items}
        keyOf={({ innerHash }) => innerHash}
        empty={<NoTransfers isFiltered={view !== 'all' || search !== ''} />}
      />
      <Pager path="/transfers" query={query} next={found.next} />
    </>
  )
}

const isView = (text: string): text is TransferView => Object.hasOwn(TRANSFER_VIEWS, text)

function NoTransfers({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <>
        <strong>Nothing found</strong>
        <p>A search finds whole account addresses (G…) and whole hashes, the client’s or the sponsor’s.</p>
      </>
    )
  }
  return (
    <>
      <strong>No transfers yet</strong>
      <p>
        An employer’s wallet signs one and sends it with <code>POST /transfer</code>. To see five of them, run{' '}
        <code>npm run demo</code>.
      </p>
    </>
  )
}
