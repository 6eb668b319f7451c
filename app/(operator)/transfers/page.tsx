import type { Metadata } from 'next'
import { readIfReachable } from '#lib/operator/reading.ts'
import { listRefusals } from '#lib/operator/refusals.ts'
import { listTransfers, type TransferView } from '#lib/operator/transfers.ts'
import type { Service } from '#lib/server/services.ts'
import { Frame } from '../frame.tsx'
import { addressOf, Pager, pageOf, type Query, readSearch, Tabs } from '../listing.tsx'
import { requireOperator } from '../require-operator.ts'
import { Table, Unreachable } from '../table.tsx'
import { NothingFound } from './nothing-found.tsx'
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
  const view = TABS.find(([value]) => value === query.view)?.[0] ?? ''
  const asked = { service, query, search: (query.search ?? '').trim() }
  return (
    <Frame here="/transfers" title="Transfers" network={service.settings.network.name}>
      <Tabs label="Result" path="/transfers" name="view" chosen={view} tabs={TABS} query={{ search: asked.search }} />
      <SearchForm search={asked.search} view={view} />
      {view === 'refused' ? <Refused {...asked} /> : <Accepted {...asked} view={view || 'all'} />}
    </Frame>
  )
}

interface Asked {
  service: Service
  query: Query
  /** without spaces around it */
  search: string
}

async function Refused({ service: { database, now }, query, search }: Asked) {
  const found = await readIfReachable(database, (db) => listRefusals(db, pageOf(query), { search }))
  if (!found) return <Unreachable />
  return (
    <>
      <RefusalTable rows={found.items} now={now()} search={search} />
      <Pager path="/transfers" query={query} next={found.next} />
    </>
  )
}

async function Accepted({ service: { database, settings, now }, query, view, search }: Asked & { view: TransferView }) {
  const found = await readIfReachable(database, (db) => listTransfers(db, { view, search }, pageOf(query)))
  if (!found) return <Unreachable />
  return (
    <>
      <Table
        caption="Sponsored transfers, newest first"
        columns={transferColumns(settings.network.name, now())}
        rows={found.items}
        keyOf={({ innerHash }) => innerHash}
        empty={
          view === 'all' && search === '' ? (
            <NoTransfers network={settings.network.name} />
          ) : (
            <NoneFound search={search} />
          )
        }
      />
      <Pager path="/transfers" query={query} next={found.next} />
    </>
  )
}

function NoneFound({ search }: { search: string }) {
  return (
    <NothingFound search={search}>
      A search finds the whole address of who pays, who is paid or whose quota it is (G… or C…), and a whole hash, outer
      or inner.
    </NothingFound>
  )
}

function NoTransfers({ network }: { network: string }) {
  return (
    <>
      <strong>No transfers yet</strong>
      <p>
        An employer’s wallet signs one and sends it with <code>POST /transfer</code>.
        {network === 'local' && (
          <>
            {' '}
            To see five of them, run <code>npm run demo</code>.
          </>
        )}
      </p>
    </>
  )
}
