import type { BatchLine } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import { Facts } from '../../facts.tsx'
import { between, Moment } from '../../figures.tsx'
import { Progress } from '../../progress.tsx'
import { OrganisationLink } from '../../record-links.tsx'
import { Status } from '../../status.tsx'

/** The organisation of a batch, and its progress. */
export function BatchSummary({ batch, now }: { batch: BatchLine; now: Date }) {
  const { settledCount, failedCount, payoutCount, startedAt, createdAt, progressedAt, completedAt } = batch
  const { id } = batch
  return (
    <section aria-label="Summary">
      <Facts
        facts={[
          ['Status', <Status key={id} of="batch" is={batchState(batch, now)} />],
          [
            'Paid',
            <Progress key={id} label="Payouts" settled={settledCount} failed={failedCount} total={payoutCount} />,
          ],
          ['Organisation', <OrganisationLink key={id} id={batch.organisation} name={batch.organisationName} />],
          ['Created', <Moment key={id} at={createdAt} now={now} />],
          ...(startedAt ? [['Started', <Moment key={id} at={startedAt} now={now} />] as const] : []),
          ...(progressedAt ? [['Last progress', <Moment key={id} at={progressedAt} now={now} />] as const] : []),
          ...(completedAt ? [['Completed', <Moment key={id} at={completedAt} now={now} />] as const] : []),
          ['Took', tookOf(batch, now)],
          ['Batch id', <code key={id}>{id}</code>],
        ]}
      />
    </section>
  )
}

/** How long a batch took, or takes so far. */
function tookOf({ status, startedAt, completedAt }: BatchLine, now: Date): string {
  if (startedAt && completedAt) return between(startedAt, completedAt)
  return startedAt && status === 'started' ? `${between(startedAt, now)} so far` : '–'
}
