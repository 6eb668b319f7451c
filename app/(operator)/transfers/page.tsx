import type { Metadata } from 'next'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { countRefusals, listRefusals, refusalFiltersOf } from '#lib/dashboard/refusals.ts'
import { TRANSFER_FILTERS } from '#lib/dashboard/transfer-filters.ts'
import { listTransfers } from '#lib/dashboard/transfers.ts'
import type { Service } from '#lib/server/services.ts'
import { BY_TIME } from '../list-display.ts'
import { ListView } from '../list-view.tsx'
import { addressOf, type Query, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { refusalColumns } from './refusal-columns.tsx'
import { REFUSAL_LIST } from './refusal-list.ts'
import { transferColumns } from './transfer-columns.tsx'
import { TRANSFER_LIST, withoutFaucet } from './transfer-list.ts'

export const metadata: Metadata = { title: 'Transfers' }

const TABS = [
  ['', 'All'],
  ['open', 'Open'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['refused', 'Refused'],
] as const

const SORTS = [...BY_TIME, ['fee', 'Highest fee (newest 10,000)']] as const

/** The tabs share their filters. The tab Refused also shows a filter that no refusal can match; its list is then empty. */
const REFUSED_CHECKS = {
  ...REFUSAL_LIST.checks,
  batch: TRANSFER_FILTERS.batch,
  reason: TRANSFER_FILTERS.reason,
}

const NO_REFUSALS: Awaited<ReturnType<typeof listRefusals>> = { rows: [], previous: undefined, next: undefined }

type Db = Parameters<typeof listTransfers>[0]

/** The transfers that the sponsor paid for, with their recipients, and the transfers that it refused. */
export default async function TransfersPage({ searchParams }: PageProps<'/transfers'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/transfers', query))
  const { database, settings, now } = service
  const network = settings.network.name
  const { filters, unknown } = readFilters(query.view === 'refused' ? REFUSED_CHECKS : TRANSFER_FILTERS, query)
  const data = await readIfReachable(database, (db) => readFound(db, query, service))
  const page = {
    here: '/transfers',
    title: 'Transfers',
    network,
    path: '/transfers',
    now: now(),
    query,
    filters,
    unknown,
    names: data?.names ?? {},
    tabs: { label: 'Result', name: 'view', tabs: TABS },
  } as const
  if (data?.refusals) {
    return (
      <ListView
        {...page}
        list={{ ...data.refusals, counts: data.counts, total: data.counts.get('refused') ?? 0 }}
        sorts={BY_TIME}
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
      sorts={SORTS}
      nouns={['transfer', 'transfers']}
      csv={[{ list: TRANSFER_LIST, of: 'These transfers' }]}
      columns={transferColumns(now())}
      keyOf={({ id }) => id}
      empty={<NoTransfers network={network} />}
    />
  )
}

async function readFound(db: Db, query: Query, service: Service) {
  const { filters } = readFilters(TRANSFER_FILTERS, query)
  const refused = refusalFiltersOf(query)
  const isRefused = query.view === 'refused'
  const transfers = await listTransfers(db, withoutFaucet(filters, service), isRefused ? {} : query)
  const count = refused ? await countRefusals(db, refused) : 0
  const listed = isRefused && refused ? await listRefusals(db, refused, query) : NO_REFUSALS
  const names = await findFilterNames(db, filters)
  return {
    transfers,
    refusals: isRefused ? listed : undefined,
    names,
    counts: new Map(transfers.counts).set('refused', count),
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
