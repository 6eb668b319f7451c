import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { type JobLine, type LaneLine, listJobs, listLanes } from '#lib/operator/jobs.ts'
import { readIfReachable } from '#lib/operator/reading.ts'
import { between, Moment } from '../figures.tsx'
import { Frame } from '../frame.tsx'
import { Hash } from '../hash.tsx'
import { addressOf, Pager, pageOf, readSearch } from '../listing.tsx'
import { Progress } from '../progress.tsx'
import { requireOperator } from '../require-operator.ts'
import { Status } from '../status.tsx'
import { Empty, Unreachable } from '../table.tsx'
import { ItemList } from './item-list.tsx'
import { Lanes } from './lanes.tsx'

export const metadata: Metadata = { title: 'Jobs' }

/** What the relay pays by itself: its jobs, its lanes, and how long everything takes. */
export default async function JobsPage({ searchParams }: PageProps<'/jobs'>) {
  const query = await readSearch(searchParams)
  const { database, settings, now } = await requireOperator(addressOf('/jobs', query))
  const network = settings.network.name
  const found = await readIfReachable(database, async (db) => {
    const [jobs, lanes] = await Promise.all([
      listJobs(db, pageOf(query, 20)),
      settings.token ? listLanes(db, settings.token, now()) : ([] as LaneLine[]),
    ])
    return { jobs, lanes }
  })
  return (
    <Frame here="/jobs" title="Jobs" network={network}>
      {found ? (
        <>
          {found.lanes.length > 0 && <Lanes lanes={found.lanes} now={now()} />}
          {found.jobs.items.length === 0 ? (
            <NoJobs isOn={settings.batch !== undefined} />
          ) : (
            <ol aria-label="Jobs, newest first" className="space-y-3">
              {found.jobs.items.map((job) => (
                <li key={job.id}>
                  <Job job={job} network={network} now={now()} />
                </li>
              ))}
            </ol>
          )}
          <Pager path="/jobs" query={query} next={found.jobs.next} />
        </>
      ) : (
        <Unreachable />
      )}
    </Frame>
  )
}

function Job({ job, network, now }: { job: JobLine; network: string; now: Date }) {
  const count = (status: string) => job.items.filter((item) => item.status === status).length
  return (
    <details open={job.status === 'running'} className="group rounded-lg border border-line bg-surface shadow-card">
      <summary className="grid list-none [&::-webkit-details-marker]:hidden grid-cols-[1fr_auto] items-center gap-x-6 gap-y-2 rounded-lg px-4 py-3 hover:bg-raised sm:grid-cols-[9rem_minmax(8rem,1fr)_7rem_9rem]">
        <span>
          <span aria-hidden="true" className="mr-1.5 inline-block text-faint transition-transform group-open:rotate-90">
            ›
          </span>
          <Moment at={job.createdAt} now={now} />
          <span className="block pl-3 text-xs text-faint">
            job <Hash value={job.id} />
          </span>
        </span>
        <span className="max-sm:order-last max-sm:col-span-2">
          <Progress label="Transfers" settled={count('paid')} failed={count('failed')} total={job.items.length} />
        </span>
        <Status of="job" is={job.status} />
        <span className="text-right text-soft max-sm:hidden">
          {job.endedAt ? `took ${between(job.createdAt, job.endedAt)}` : `since ${between(job.createdAt, now)}`}
        </span>
      </summary>
      <div className="border-t border-line px-4 py-3">
        {job.error && <p className="mb-3 text-bad">{job.error}</p>}
        <ItemList items={job.items} network={network} />
        <p className="mt-3 text-xs text-faint">
          For <Hash value={job.userSub} /> ({job.userKind === 'ledger' ? 'wallet' : 'identity provider'}). The amounts
          are sealed to the relay.
        </p>
      </div>
    </details>
  )
}

function NoJobs({ isOn }: { isOn: boolean }) {
  return (
    <Empty>
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
    </Empty>
  )
}
