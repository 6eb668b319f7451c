import type { BatchLine } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import { BatchProgress } from '../batches/batch-list.tsx'
import { counted, Moment } from '../figures.tsx'
import { addressOf } from '../query.ts'
import { PageLink, RecordLink } from '../record-links.tsx'
import { Section } from '../section.tsx'
import { Status } from '../status.tsx'

interface MovingBatchesProps {
  batches: readonly BatchLine[]
  /** the number of batches in progress, at most MAX_COUNTED + 1 */
  total: number
  now: Date
}

/** The batches in progress, those that have been idle longest first. */
export function MovingBatches({ batches, total, now }: MovingBatchesProps) {
  const all = `All ${counted(total)} batches in progress`
  const rest = `${total - batches.length} more, with later progress`
  const order = <span className="ml-3 text-xs font-normal text-faint">longest without progress first</span>
  return (
    <Section id="moving" title="Batches in progress" note={total > 0 && counted(total)} beside={total > 1 && order}>
      {batches.length === 0 ? (
        <p className="rounded-lg border border-line bg-surface px-4 py-3 text-soft shadow-card">
          None. A batch appears here with its first payment, and disappears when everything is paid.
        </p>
      ) : (
        <ul className="divide-y divide-line rounded-lg border border-line bg-surface shadow-card">
          {batches.map((batch) => (
            <li
              key={batch.id}
              className="grid items-center gap-x-6 gap-y-1 px-4 py-3 sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)] lg:grid-cols-[minmax(0,1fr)_8rem_minmax(0,1fr)_17rem] sm:px-5"
            >
              <div className="min-w-0">
                <RecordLink type="batch" id={batch.id} name={batch.name} />
                <div className="text-xs text-faint">
                  <RecordLink type="organisation" id={batch.organisation} name={batch.organisationName} />
                </div>
              </div>
              <Status is={batchState(batch, now)} />
              <BatchProgress batch={batch} />
              {batch.progressedAt && (
                <p className="text-[0.8125rem] text-soft lg:text-right">
                  <span className="text-xs text-faint">last progress</span> <Moment at={batch.progressedAt} now={now} />
                </p>
              )}
            </li>
          ))}
        </ul>
      )}
      {total > batches.length && (
        <p className="mt-2 text-[0.8125rem]">
          <PageLink
            href={addressOf('/batches', { status: 'started' })}
            name={total > MAX_COUNTED ? all : rest}
            className="text-soft underline underline-offset-4 hover:text-accent"
          />
        </p>
      )}
    </Section>
  )
}
