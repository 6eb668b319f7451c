import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { type ChannelLine, listChannels } from '#lib/dashboard/channels.ts'
import { listJobs } from '#lib/dashboard/jobs.ts'
import { findOrganisationName } from '#lib/dashboard/list.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { ListView } from '../list-view.tsx'
import { addressOf, pageNumber, readQuery } from '../query.ts'
import { requireOperator } from '../require-operator.ts'
import { organisationFilter } from '../search-form.tsx'
import { Channels } from './channels.tsx'
import { JobDetails } from './job-details.tsx'
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
  const filters = JOB_LIST.filters(query, service)
  const network = settings.network.name
  const data = await readIfReachable(database, async (db) => ({
    list: await listJobs(db, { ...filters, page: pageNumber(query) }),
    channels: settings.token ? await listChannels(db, settings.token, now()) : ([] as ChannelLine[]),
    organisation: await findOrganisationName(db, filters.organisation),
  }))
  return (
    <ListView
      here="/jobs"
      title="Jobs"
      network={network}
      path="/jobs"
      query={query}
      list={data?.list}
      nouns={['job', 'jobs']}
      searches="name, email, address, job or hash"
      tabs={{ label: 'Status', name: 'status', tabs: TABS }}
      filters={organisationFilter(query, data?.organisation)}
      csv={[{ list: JOB_LIST, of: 'These jobs' }]}
      before={data && data.channels.length > 0 && <Channels channels={data.channels} network={network} now={now()} />}
      empty={<NoJobs isOn={settings.batch !== undefined} />}
    >
      {(jobs) => (
        <ol aria-label="Jobs, newest first" className="space-y-3">
          {jobs.map((job) => (
            <li key={job.id}>
              <JobDetails
                job={job}
                network={network}
                now={now()}
                isOpen={job.status === 'running' || (filters.q !== '' && jobs.length === 1)}
              />
            </li>
          ))}
        </ol>
      )}
    </ListView>
  )
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
