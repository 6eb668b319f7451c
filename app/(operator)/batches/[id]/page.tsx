import type { Metadata } from 'next'
import { notFound } from 'next/navigation'
import { findBatchRun } from '#lib/dashboard/batch-run.ts'
import { findBatchLine } from '#lib/dashboard/batches.ts'
import { readAttentionOf } from '#lib/dashboard/overview.ts'
import { listPayouts, type PayoutRequest } from '#lib/dashboard/payouts.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import type { Service } from '#lib/server/services.ts'
import { refreshTransfers } from '#lib/transfers/refresh.ts'
import { AttentionItems } from '../../attention-items.tsx'
import { ListView } from '../../list-view.tsx'
import { addressOf, pageNumber, readQuery } from '../../query.ts'
import { requireOperator } from '../../require-operator.ts'
import { BatchSummary } from './batch-summary.tsx'
import { payoutColumns } from './payout-columns.tsx'
import { PAYOUT_LIST } from './payout-list.ts'
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
  const request = { ...PAYOUT_LIST.filters({ ...query, batch: id }, service), page: pageNumber(query) }
  const data = await readIfReachable(service.database, (db) => read(db, service, id, request))
  if (data && !data.batch) notFound()
  return (
    <ListView
      here="/batches"
      title={data?.batch?.name ?? 'A batch'}
      network={network}
      above={{ href: '/batches', name: 'Batches' }}
      path={path}
      query={query}
      list={data?.payouts}
      nouns={['payout', 'payouts']}
      searches="contractor, address or hash"
      tabs={{ label: 'Status', name: 'status', tabs: TABS }}
      csv={[{ list: PAYOUT_LIST, query: { batch: id }, of: 'These payouts' }]}
      before={
        data?.batch && (
          <>
            {data.attention.length > 0 && (
              <section aria-label="Needs attention" className="mb-4">
                <AttentionItems items={data.attention} back={path} network={network} now={service.now()} />
              </section>
            )}
            <BatchSummary batch={data.batch} now={service.now()} />
            <RunSummary run={data.run} network={network} now={service.now()} />
          </>
        )
      }
      columns={payoutColumns(network, service.now())}
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

async function read(db: Db, { tracker, now }: Service, id: string, request: PayoutRequest) {
  const beforeRefresh = await findBatchLine(db, id)
  // Reading a batch refreshes its open transfers, as in the API. On serverless hosts, nothing else refreshes them.
  if (beforeRefresh?.status === 'started') await refreshTransfers(db, tracker, [beforeRefresh.organisation])
  const batch = beforeRefresh?.status === 'started' ? await findBatchLine(db, id) : beforeRefresh
  if (!batch) return { attention: [] }
  const [payouts, run, attention] = await Promise.all([
    listPayouts(db, request),
    findBatchRun(db, id, now()),
    readAttentionOf(db, now(), { batch: id }),
  ])
  return { batch, payouts, run, attention }
}
