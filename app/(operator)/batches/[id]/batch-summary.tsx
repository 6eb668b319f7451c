import type { BatchLine } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import { between, Moment } from '../../figures.tsx'
import { Progress } from '../../progress.tsx'
import { OrganisationLink } from '../../record-links.tsx'
import { Status } from '../../status.tsx'

/** The organisation of a batch, and its progress. */
export function BatchSummary({ batch, now }: { batch: BatchLine; now: Date }) {
  const { settledCount, failedCount, payoutCount, startedAt, createdAt, progressedAt } = batch
  const facts = [
    [
      'Organisation',
      <OrganisationLink key="organisation" id={batch.organisation} name={batch.organisationName} path="/batches" />,
    ],
    ['Status', <Status key="status" of="batch" is={batchState(batch, now)} />],
    ['Created', <Moment key="created" at={createdAt} now={now} />],
    ['Started', startedAt ? <Moment key="started" at={startedAt} now={now} /> : '–'],
    ...(progressedAt ? [['Last progress', <Moment key="progressed" at={progressedAt} now={now} />] as const] : []),
    [
      'Took',
      <span key="took" className="whitespace-nowrap">
        {tookOf(batch, now)}
      </span>,
    ],
  ] as const
  return (
    <section aria-label="Summary" className="mb-6 rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
      <dl className="grid grid-cols-2 gap-x-8 gap-y-4 sm:flex sm:flex-wrap">
        {facts.map(([term, value]) => (
          <div key={term} className="min-w-0">
            <dt className="text-xs text-faint">{term}</dt>
            <dd className="mt-0.5 break-words max-sm:[&>time>span]:block">{value}</dd>
          </div>
        ))}
      </dl>
      <div className="mt-5">
        <Progress label="Payouts" settled={settledCount} failed={failedCount} total={payoutCount} />
      </div>
    </section>
  )
}

/** How long a batch took, or takes so far. */
export function tookOf({ status, startedAt, completedAt }: BatchLine, now: Date): string {
  if (startedAt && completedAt) return between(startedAt, completedAt)
  return startedAt && status === 'started' ? `${between(startedAt, now)} so far` : '–'
}
