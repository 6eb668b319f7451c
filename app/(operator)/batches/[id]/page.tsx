import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import { findBatchRun } from '#lib/dashboard/batch-run.ts'
import { findBatchLine } from '#lib/dashboard/batches.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { readBatchPage } from '#lib/dashboard/record-pages.ts'
import type { Service } from '#lib/server/services.ts'
import { adoptTransfersOf } from '#lib/transfers/adoption.ts'
import { renderList } from '../../list-rendering.tsx'
import RecordNotFound from '../../not-found.tsx'
import { PAYOUT_LIST } from '../../payouts/payout-list.tsx'
import { addressOf, readQuery } from '../../query.ts'
import { RecordAttention } from '../../record-view.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Timeline } from '../../timeline.tsx'
import { BatchSummary } from './batch-summary.tsx'
import { RunSummary } from './run-summary.tsx'

export const metadata: Metadata = { title: 'A batch' }

/** One batch and the results of its payouts, while it runs and afterwards. */
export default async function BatchPage({ params, searchParams }: PageProps<'/batches/[id]'>) {
  const [{ id }, query] = [await params, await readQuery(searchParams)]
  const path = `/batches/${encodeURIComponent(id)}`
  const service = await requireOperator(addressOf(path, query))
  const network = service.settings.network.name
  const now = service.now()
  const data = await readIfReachable(service.database, async (db) => ({ ...(await read(db, service, id)) }))
  if (data && !data.page) return missing(<RecordNotFound />)
  const page = data?.page
  return await renderList(PAYOUT_LIST, query, service, {
    before: page && (
      <>
        <RecordAttention page={page} path={path} network={network} now={now} />
        <BatchSummary batch={page.record} now={now} />
        <RunSummary
          run={data?.run}
          isDraft={page.record.status === 'draft'}
          isStarted={page.record.startedAt !== null}
          network={network}
          now={now}
        />
      </>
    ),
    within: {
      filters: { batch: id },
      path,
      title: page?.record.name ?? PAYOUT_LIST.title,
      above: { href: '/batches', name: 'Batches' },
      after: page && <Timeline timeline={page.timeline} older={{ record: id }} network={network} now={now} />,
    },
  })
}

async function read(db: Parameters<typeof findBatchLine>[0], { tracker, now }: Service, id: string) {
  const before = await findBatchLine(db, id)
  // Reading a batch refreshes its open transfers, as in the API. On serverless hosts, nothing else refreshes them.
  if (before?.status === 'started') await adoptTransfersOf(db, tracker, [before.organisation])
  const page = await readBatchPage(db, id, now())
  return page && { page, run: await findBatchRun(db, id, now()) }
}
