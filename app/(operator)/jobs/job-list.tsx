import { listChannels } from '#lib/dashboard/channels.ts'
import { JOBS, type JobSummary } from '#lib/dashboard/jobs.ts'
import { jobState } from '#lib/dashboard/lateness.ts'
import { fileColumn, linkColumn, organisationColumn, statusColumn } from '../columns.tsx'
import { between, Moment } from '../figures.tsx'
import type { ListDisplay } from '../list-display.ts'
import { Progress } from '../progress.tsx'
import { ApiReference } from '../record-links.tsx'
import { Channels } from './channels.tsx'

export const JOB_LIST: ListDisplay<typeof JOBS.filters, JobSummary> = {
  records: JOBS,
  here: '/jobs',
  title: 'Jobs',
  nouns: ['job', 'jobs'],
  before: async (db, { settings: { token, network }, now }) => {
    const channels = token ? await listChannels(db, token, now()) : []
    return channels.length > 0 && <Channels channels={channels} network={network.name} now={now()} />
  },
  columns: [
    fileColumn('Created (UTC)', ({ createdAt }) => createdAt),
    {
      ...linkColumn('Job', 'job', ({ id, batch, batchName }: JobSummary) => ({
        id,
        name: batch ? `Run of ${batchName}` : `Job ${id.slice(0, 8)}`,
      })),
      isName: true,
      beneath: (job) => (
        <div className="my-1 md:hidden">
          <JobProgress job={job} />
        </div>
      ),
    },
    organisationColumn({ from: 'xl', isName: true }),
    fileColumn('User', ({ userEmail, userSub }) => userEmail ?? userSub),
    statusColumn(jobState),
    {
      head: 'Paid',
      from: 'md',
      isOmitted: true,
      cell: (job) => <JobProgress job={job} />,
      value: ({ items }) => items.paid,
    },
    fileColumn('Failed', ({ items }) => items.failed),
    fileColumn('Transfers', ({ items }) => items.all),
    fileColumn('Error', ({ error }) => error),
    { head: 'Started', from: 'sm', cell: ({ createdAt }, { now }) => <Moment at={createdAt} now={now} /> },
    {
      head: 'Took',
      from: 'xl',
      isNumber: true,
      cell: ({ createdAt, endedAt }, { now }) =>
        endedAt ? between(createdAt, endedAt) : `${between(createdAt, now)} so far`,
    },
    fileColumn('Ended (UTC)', ({ endedAt }) => endedAt),
    fileColumn('Job id', ({ id }) => id),
  ],
  empty: ({ batch }) =>
    batch
      ? {
          title: 'No jobs yet',
          children: (
            <>
              A user starts one with <code>POST /batch</code>; see the <ApiReference />.
            </>
          ),
        }
      : {
          title: 'Batch execution is off',
          children: (
            <>
              Set <code>BATCH_ENABLED=true</code> and a relay key, and start a relay with <code>npm run relay</code>.
            </>
          ),
        },
}

export function JobProgress({ job: { items } }: { job: JobSummary }) {
  return <Progress label="Transfers" settled={items.paid} failed={items.failed} total={items.all} />
}
