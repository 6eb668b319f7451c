import { findApproval } from '#lib/dashboard/approvals.ts'
import { type BatchLine, findBatchLine } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import { findBatchRun } from '#lib/dashboard/paying-channels.ts'
import { readBatchPage } from '#lib/dashboard/record-pages.ts'
import { adoptTransfersOf } from '#lib/transfers/adoption.ts'
import { between, Moment } from '../../figures.tsx'
import { ListView, readShown } from '../../list-view.tsx'
import { PAYOUT_LIST } from '../../payouts/payout-list.tsx'
import { RecordLink } from '../../record-links.tsx'
import { recordPage } from '../../record-page.tsx'
import { Status } from '../../status.tsx'
import { BatchProgress } from '../batch-list.tsx'
import { RunSummary } from './run-summary.tsx'

export const metadata = { title: 'A batch' }

/** One batch and the results of its payouts, while it runs and afterwards. */
export default recordPage({
  type: 'batch',
  here: '/batches',
  read: async (db, { id, query, service, now }) => {
    const before = await findBatchLine(db, id)
    // Reading a batch refreshes its open transfers, as in the API. On serverless hosts, nothing else refreshes them.
    if (before?.status === 'started') await adoptTransfersOf(db, service.tracker, [before.organisation])
    const page = await readBatchPage(db, id, now)
    const run = page && (await findBatchRun(db, id, now))
    const approval = page && (await findApproval(db, id))
    return (
      page && { ...page, run, approval, payouts: await readShown(db, PAYOUT_LIST, service, { ...query, batch: id }) }
    )
  },
  title: (batch) => batch?.name ?? 'A batch',
  facts: (batch, { now }) => {
    const { id, startedAt, progressedAt, completedAt } = batch
    return {
      Status: <Status is={batchState(batch, now)} />,
      Paid: <BatchProgress batch={batch} label="Payouts" />,
      Organisation: <RecordLink type="organisation" id={batch.organisation} name={batch.organisationName} />,
      Created: <Moment at={batch.createdAt} now={now} />,
      Started: startedAt && <Moment at={startedAt} now={now} />,
      'Last progress': progressedAt && <Moment at={progressedAt} now={now} />,
      Completed: completedAt && <Moment at={completedAt} now={now} />,
      Took: durationOf(batch, now),
      'External id': batch.externalId && <code>{batch.externalId}</code>,
      'Batch id': <code>{id}</code>,
    }
  },
  content: ({ record, run, approval, payouts }, { id, path, query, service, network, now }) => (
    <>
      <RunSummary run={run} approval={approval} batch={record} network={network} now={now} />
      <div className="mb-8">
        <ListView
          {...{ display: PAYOUT_LIST, service, query, reading: payouts }}
          within={{ path, title: record.name, filters: { batch: id } }}
        />
      </div>
    </>
  ),
})

/** How long a batch took, or takes so far. */
function durationOf({ status, startedAt, completedAt }: BatchLine, now: Date): string {
  if (startedAt && completedAt) return between(startedAt, completedAt)
  return startedAt && status === 'started' ? `${between(startedAt, now)} so far` : '–'
}
