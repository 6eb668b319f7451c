import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { type ChannelLine, listChannels } from '#lib/dashboard/channels.ts'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { JOB_FILTERS, type JobSummary, listJobs } from '#lib/dashboard/jobs.ts'
import { jobState } from '#lib/dashboard/lateness.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { between, Moment } from '../figures.tsx'
import { BY_TIME } from '../list-display.ts'
import { ListView } from '../list-view.tsx'
import { Progress } from '../progress.tsx'
import { addressOf, readQuery } from '../query.ts'
import { JobLink, OrganisationLink } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { Channels } from './channels.tsx'
import { JOB_LIST } from './job-list.ts'

export const metadata: Metadata = { title: 'Jobs' }

const TABS = [
  ['', 'All'],
  ['running', 'Running'],
  ['completed', 'Completed'],
  ['failed', 'Failed'],
] as const

/** The relay: its jobs, its channels, and the time that its items take. */
export default async function JobsPage({ searchParams }: PageProps<'/jobs'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/jobs', query))
  const { database, settings, now } = service
  const { filters, unknown } = readFilters(JOB_FILTERS, query)
  const network = settings.network.name
  const data = await readIfReachable(database, async (db) => ({
    list: await listJobs(db, filters, query),
    channels: settings.token ? await listChannels(db, settings.token, now()) : ([] as ChannelLine[]),
    names: await findFilterNames(db, filters),
  }))
  return (
    <ListView
      here="/jobs"
      title="Jobs"
      network={network}
      path="/jobs"
      now={now()}
      query={query}
      list={data?.list}
      nouns={['job', 'jobs']}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      sorts={BY_TIME}
      tabs={{ label: 'Status', name: 'status', tabs: TABS }}
      csv={[{ list: JOB_LIST, of: 'These jobs' }]}
      before={data && data.channels.length > 0 && <Channels channels={data.channels} network={network} now={now()} />}
      empty={<NoJobs isOn={settings.batch !== undefined} />}
      columns={columnsAt(now())}
      keyOf={({ id }) => id}
    />
  )
}

const columnsAt = (now: Date): Column<JobSummary>[] => [
  {
    head: 'Job',
    isName: true,
    cell: ({ id, batch, batchName }) => (
      <span className="font-medium">
        <JobLink id={id} name={batch ? `Run of ${batchName}` : `Job ${id.slice(0, 8)}`} />
      </span>
    ),
    beneath: (job) => (
      <div className="my-1 md:hidden">
        <JobProgress job={job} />
      </div>
    ),
  },
  {
    head: 'Organisation',
    isName: true,
    from: 'xl',
    isRepeated: true,
    cell: ({ organisation, organisationName }) =>
      organisation === null ? '–' : <OrganisationLink id={organisation} name={organisationName ?? ''} />,
  },
  { head: 'Status', cell: (job) => <Status of="job" is={jobState(job, now)} /> },
  { head: 'Paid', from: 'md', cell: (job) => <JobProgress job={job} /> },
  { head: 'Started', from: 'sm', isRepeated: true, cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
  {
    head: 'Took',
    from: 'xl',
    isRepeated: true,
    isNumber: true,
    cell: ({ createdAt, endedAt }) => (endedAt ? between(createdAt, endedAt) : `${between(createdAt, now)} so far`),
  },
]

function JobProgress({ job: { items } }: { job: JobSummary }) {
  return <Progress label="Transfers" settled={items.paid} failed={items.failed} total={items.all} />
}

function NoJobs({ isOn }: { isOn: boolean }) {
  return (
    <>
      <strong>{isOn ? 'No jobs yet' : 'Batch execution is off'}</strong>
      <p>
        {isOn ? (
          <>
            A user starts one with <code>POST /batch</code>; see the{' '}
            <Link href={'/docs' as Route} prefetch={false}>
              API reference
            </Link>
            .
          </>
        ) : (
          <>
            Set <code>BATCH_ENABLED=true</code> and a relay key, and start a relay with <code>npm run relay</code>.
          </>
        )}
      </p>
    </>
  )
}
