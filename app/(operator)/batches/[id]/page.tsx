import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import { findBatchRun } from '#lib/dashboard/batch-run.ts'
import { findBatchLine } from '#lib/dashboard/batches.ts'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { listPayouts, PAYOUT_FILTERS, type PayoutFilters } from '#lib/dashboard/payouts.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { readBatchPage } from '#lib/dashboard/record-pages.ts'
import type { Service } from '#lib/server/services.ts'
import { adoptTransfersOf } from '#lib/transfers/adoption.ts'
import { ListView } from '../../list-view.tsx'
import RecordNotFound from '../../not-found.tsx'
import { payoutColumns } from '../../payouts/payout-columns.tsx'
import { PAYOUT_LIST } from '../../payouts/payout-list.ts'
import { addressOf, type Query, readQuery } from '../../query.ts'
import { RecordAttention } from '../../record-view.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Timeline } from '../../timeline.tsx'
import { BatchSummary } from './batch-summary.tsx'
import { RunSummary } from './run-summary.tsx'

export const metadata: Metadata = { title: 'A batch' }

const TABS = [
  ['', 'All'],
  ['draft', 'Draft'],
  ['ready', 'Ready'],
  ['pending', 'Pending'],
  ['paid', 'Paid'],
  ['failed', 'Failed'],
  ['canceled', 'Canceled'],
] as const

/** One batch and the results of its payouts, while it runs and afterwards. */
export default async function BatchPage({ params, searchParams }: PageProps<'/batches/[id]'>) {
  const [{ id }, query] = [await params, await readQuery(searchParams)]
  const path = `/batches/${encodeURIComponent(id)}`
  const service = await requireOperator(addressOf(path, query))
  const network = service.settings.network.name
  const { filters, unknown } = readFilters(PAYOUT_FILTERS, { ...query, batch: id })
  const data = await readIfReachable(service.database, async (db) => ({
    ...(await read(db, service, id, { filters, query })),
  }))
  if (data && !data.page) return missing(<RecordNotFound />)
  return (
    <ListView
      here="/batches"
      title={data?.page?.record.name ?? 'A batch'}
      network={network}
      above={{ href: '/batches', name: 'Batches' }}
      path={path}
      now={service.now()}
      within={{ batch: id }}
      query={query}
      list={data?.payouts}
      nouns={['payout', 'payouts']}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      tabs={{ label: 'Status', name: 'status', tabs: TABS }}
      csv={[{ list: PAYOUT_LIST, of: 'These payouts' }]}
      before={
        data?.page && (
          <>
            <RecordAttention page={data.page} path={path} network={network} now={service.now()} />
            <BatchSummary batch={data.page.record} now={service.now()} />
            <RunSummary
              run={data.run}
              isStarted={data.page.record.startedAt !== null}
              network={network}
              now={service.now()}
            />
          </>
        )
      }
      after={
        data?.page && (
          <Timeline timeline={data.page.timeline} older={{ record: id }} network={network} now={service.now()} />
        )
      }
      columns={payoutColumns('contractor', service.now())}
      keyOf={(payout) => payout.id}
      empty={
        <>
          <strong>No payouts yet</strong>
          <p>
            The employer adds them with <code>POST /batches/{'{id}'}/instructions</code>, then locks the batch.
          </p>
        </>
      }
    />
  )
}

type Db = Parameters<typeof findBatchLine>[0]

interface Shown {
  filters: PayoutFilters
  query: Query
}

async function read(db: Db, { tracker, now }: Service, id: string, { filters, query }: Shown) {
  const before = await findBatchLine(db, id)
  // Reading a batch refreshes its open transfers, as in the API. On serverless hosts, nothing else refreshes them.
  if (before?.status === 'started') await adoptTransfersOf(db, tracker, [before.organisation])
  const page = await readBatchPage(db, id, now())
  if (!page) return undefined
  const [payouts, run, names] = await Promise.all([
    listPayouts(db, filters, query),
    findBatchRun(db, id, now()),
    findFilterNames(db, filters),
  ])
  return { page, payouts, run, names }
}
