import type { JobLine } from '#lib/dashboard/jobs.ts'
import { jobState } from '#lib/dashboard/lateness.ts'
import { between, Moment } from '../figures.tsx'
import { Hash } from '../hash.tsx'
import { Progress } from '../progress.tsx'
import { OrganisationLink, User } from '../record-links.tsx'
import { Status } from '../status.tsx'
import { ItemList } from './item-list.tsx'
import { countItems } from './job-list.ts'

interface JobDetailsProps {
  job: JobLine
  network: string
  now: Date
  /** whether its transfers are expanded from the start */
  isOpen: boolean
}

/** One relay job: its progress, and on demand each of its transfers. */
export function JobDetails({ job, network, now, isOpen }: JobDetailsProps) {
  return (
    <details open={isOpen} className="group rounded-lg border border-line bg-surface shadow-card">
      <summary className="grid list-none grid-cols-[1fr_7rem] items-center gap-x-6 gap-y-2 rounded-lg px-4 py-3 hover:bg-raised md:grid-cols-[13rem_minmax(0,1fr)_9rem_8rem] [&::-webkit-details-marker]:hidden">
        <span className="max-sm:[&>time>span]:block">
          <span aria-hidden="true" className="mr-1.5 inline-block text-faint transition-transform group-open:rotate-90">
            ›
          </span>
          <Moment at={job.createdAt} now={now} />
          <span className="block text-xs sm:pl-3 text-faint [overflow-wrap:anywhere]">
            {job.organisationName ?? `job ${job.id.slice(0, 8)}`}
          </span>
        </span>
        <span className="max-md:order-1">
          <Progress
            label="Transfers"
            settled={countItems(job, 'paid')}
            failed={countItems(job, 'failed')}
            total={job.items.length}
          />
        </span>
        <span>
          <Status of="job" is={jobState(job, now)} />
        </span>
        <span className="text-right whitespace-nowrap text-soft max-md:order-1 max-sm:text-xs">
          {job.endedAt ? `took ${between(job.createdAt, job.endedAt)}` : `since ${between(job.createdAt, now)}`}
        </span>
      </summary>
      <div className="border-t border-line px-4 py-3">
        {job.error && !job.items.some(({ error }) => error) && <p className="mb-3 text-bad">{job.error}</p>}
        <ItemList items={job.items} network={network} />
        <p className="mt-3 text-xs text-faint">
          Job <Hash value={job.id} /> for{' '}
          {job.organisation && job.organisationName && (
            <>
              <OrganisationLink id={job.organisation} name={job.organisationName} path="/jobs" />,{' '}
            </>
          )}
          <User sub={job.userSub} email={job.userEmail} network={network} />. The amounts are sealed to the relay.
        </p>
      </div>
    </details>
  )
}
