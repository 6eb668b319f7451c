import type { Metadata } from 'next'
import { findContractorName } from '#lib/dashboard/contractors.ts'
import { findOrganisationName } from '#lib/dashboard/list.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { countRefusals, listRefusals } from '#lib/dashboard/refusals.ts'
import { listTransfers } from '#lib/dashboard/transfers.ts'
import type { Service } from '#lib/server/services.ts'
import { ListView } from '../list-view.tsx'
import { addressOf, pageNumber, type Query, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { organisationFilter } from '../search-form.tsx'
import { refusalColumns } from './refusal-columns.tsx'
import { REFUSAL_LIST } from './refusal-list.ts'
import { transferColumns } from './transfer-columns.tsx'
import { TRANSFER_LIST } from './transfer-list.ts'

export const metadata: Metadata = { title: 'Transfers' }

const TABS = [
  ['', 'All'],
  ['open', 'Open'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['refused', 'Refused'],
] as const

type Db = Parameters<typeof listTransfers>[0]

/** The transfers that the sponsor paid for, with their recipients, and the transfers that it refused. */
export default async function TransfersPage({ searchParams }: PageProps<'/transfers'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/transfers', query))
  const { database, settings, now } = service
  const network = settings.network.name
  const filters = TRANSFER_LIST.filters(query, service)
  const { contractor } = filters
  const data = await readIfReachable(database, (db) => readFound(db, query, service))
  const page = {
    here: '/transfers',
    title: 'Transfers',
    network,
    path: '/transfers',
    query,
    searches: 'name, email, address or hash',
    tabs: { label: 'Result', name: 'view', tabs: TABS },
    filters: [
      ...organisationFilter(query, data?.organisation),
      ...(contractor ? [{ name: 'contractor', label: 'Contractor', value: data?.contractor ?? contractor }] : []),
    ],
  } as const
  if (data?.refusals) {
    return (
      <ListView
        {...page}
        list={{ ...data.refusals, counts: data.counts }}
        nouns={['refusal', 'refusals']}
        csv={[{ list: REFUSAL_LIST, of: 'These refusals' }]}
        columns={refusalColumns(network, now())}
        keyOf={({ sequence }) => String(sequence)}
        empty={<NoRefusals />}
        emptyTab={<NoRefusals />}
      />
    )
  }
  return (
    <ListView
      {...page}
      list={data && { ...data.transfers, counts: data.counts }}
      nouns={['transfer', 'transfers']}
      csv={[{ list: TRANSFER_LIST, of: 'These transfers' }]}
      columns={transferColumns(now())}
      keyOf={({ id }) => id}
      empty={<NoTransfers network={network} />}
    />
  )
}

async function readFound(db: Db, query: Query, service: Service) {
  const filters = TRANSFER_LIST.filters(query, service)
  const refused = REFUSAL_LIST.filters(query, service)
  const { organisation, contractor } = filters
  const page = pageNumber(query)
  const transfers = await listTransfers(db, { ...filters, page })
  const counts = new Map(transfers.counts).set('refused', await countRefusals(db, refused))
  return {
    transfers,
    counts,
    refusals: query.view === 'refused' ? await listRefusals(db, { ...refused, page }) : undefined,
    organisation: await findOrganisationName(db, organisation),
    contractor: contractor === '' ? undefined : await findContractorName(db, contractor),
  }
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

function NoRefusals() {
  return (
    <>
      <strong>No transfers were refused</strong>
      <p>Transfers that the sponsor’s policy, quotas or float do not allow are listed here with the reason.</p>
    </>
  )
}
