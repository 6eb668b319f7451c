import type { Route } from 'next'
import Link from 'next/link'
import type { BatchLine } from '#lib/operator/batches.ts'
import { Moment } from '../figures.tsx'
import { Progress } from '../progress.tsx'
import { Status } from '../status.tsx'

/** The batches that are ready or being paid. */
export function RunningBatches({ batches, now }: { batches: readonly BatchLine[]; now: Date }) {
  return (
    <section aria-labelledby="running">
      <div className="mb-2 flex items-baseline justify-between gap-4">
        <h2 id="running" className="font-semibold">
          Batches under way
        </h2>
        <Link
          href="/batches"
          prefetch={false}
          className="text-[0.8125rem] text-soft underline-offset-4 hover:underline"
        >
          All batches
        </Link>
      </div>
      {batches.length === 0 ? (
        <p className="border-t border-line pt-3 text-soft">
          None. A batch appears here when its employer locks it, and leaves when everything is paid.
        </p>
      ) : (
        <ul className="divide-y divide-line border-t border-line">
          {batches.map((batch) => (
            <li key={batch.id} className="py-2.5">
              <div className="flex flex-wrap items-baseline gap-x-4 gap-y-0.5">
                <Link
                  href={`/batches/${batch.id}` as Route}
                  prefetch={false}
                  className="min-w-0 font-medium [overflow-wrap:anywhere] underline-offset-4 hover:text-accent hover:underline"
                >
                  {batch.name}
                </Link>
                <Status of="batch" is={batch.status} />
                <span className="ml-auto text-xs text-faint">
                  <Moment at={batch.startedAt ?? batch.createdAt} now={now} />
                </span>
              </div>
              <div className="mt-1.5">
                <Progress
                  label={batch.name}
                  settled={batch.settledCount}
                  failed={batch.failedCount}
                  total={batch.payoutCount}
                />
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
