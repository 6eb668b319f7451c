import Link from 'next/link'
import type { BatchLine } from '#lib/dashboard/batches.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import { counted, Moment } from '../figures.tsx'
import { Progress } from '../progress.tsx'
import { addressOf } from '../query.ts'
import { BatchLink, OrganisationLink } from '../record-links.tsx'
import { Status } from '../status.tsx'

interface MovingBatchesProps {
  batches: readonly BatchLine[]
  /** the number of batches in progress, at most MAX_COUNTED + 1 */
  total: number
  now: Date
}

/** The batches in progress, those that have been idle longest first. */
export function MovingBatches({ batches, total, now }: MovingBatchesProps) {
  return (
    <section aria-labelledby="moving" className="mb-8">
      <h2 id="moving" className="mb-2 font-semibold">
        Batches in progress
        {total > 0 && <span className="ml-2 font-normal text-faint">{counted(total)}</span>}
        {total > 1 && <span className="ml-3 text-xs font-normal text-faint">longest without progress first</span>}
      </h2>
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
                <BatchLink id={batch.id} name={batch.name} />
                <div className="text-xs text-faint">
                  <OrganisationLink id={batch.organisation} name={batch.organisationName} />
                </div>
              </div>
              <Status of="batch" is={batchState(batch, now)} />
              <Progress
                label={batch.name}
                settled={batch.settledCount}
                failed={batch.failedCount}
                total={batch.payoutCount}
              />
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
          <Link
            href={addressOf('/batches', { status: 'started' })}
            prefetch={false}
            className="text-soft underline underline-offset-4 hover:text-accent"
          >
            {total > MAX_COUNTED
              ? `All ${counted(total)} batches in progress`
              : `${total - batches.length} more, with later progress`}
          </Link>
        </p>
      )}
    </section>
  )
}
