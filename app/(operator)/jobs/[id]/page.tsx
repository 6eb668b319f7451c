import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import type { ChannelWait } from '#lib/dashboard/channel-waits.ts'
import { findJobChannels } from '#lib/dashboard/job-channels.ts'
import type { JobSummary } from '#lib/dashboard/jobs.ts'
import { jobState } from '#lib/dashboard/lateness.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { readJobPage } from '#lib/dashboard/record-pages.ts'
import type { Fact } from '../../facts.tsx'
import { between, Moment } from '../../figures.tsx'
import { Address } from '../../hash.tsx'
import RecordNotFound from '../../not-found.tsx'
import { Pager } from '../../pager.tsx'
import { Progress } from '../../progress.tsx'
import { readQuery } from '../../query.ts'
import { BatchLink, OrganisationLink, recordPath, User } from '../../record-links.tsx'
import { RecordView } from '../../record-view.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Status } from '../../status.tsx'
import { ItemList } from '../item-list.tsx'

export const metadata: Metadata = { title: 'A job' }

/** A relay job or a run, with its transfers. */
export default async function JobPage({ params, searchParams }: PageProps<'/jobs/[id]'>) {
  const { id } = await params
  const query = await readQuery(searchParams)
  const path = recordPath('job', encodeURIComponent(id))
  const { database, settings, now } = await requireOperator(path)
  const { token } = settings
  const found = await readIfReachable(database, async (db) => {
    const page = await readJobPage(db, id, now(), query)
    return { page, channels: page ? await findJobChannels(db, page.record, token, now()) : [] }
  })
  if (found && !found.page) return missing(<RecordNotFound />)
  const network = settings.network.name
  const items = found?.page?.items
  return (
    <RecordView
      here="/jobs"
      title={`${found?.page?.record.batch ? 'Run' : 'Job'} ${id.slice(0, 8)}`}
      network={network}
      above={{ href: '/jobs', name: 'Jobs' }}
      path={path}
      now={now()}
      page={found?.page}
      facts={(record) => factsOf(record, network, now())}
      older={{ record: id }}
    >
      {found && found.channels.length > 0 && <ChannelWaits channels={found.channels} network={network} />}
      {items && (
        <section aria-labelledby="transfers" className="mb-8">
          <h2 id="transfers" className="mb-2 font-semibold">
            Transfers
          </h2>
          <div className="rounded-lg border border-line bg-surface px-4 py-3 shadow-card sm:px-5">
            <ItemList items={items.items} network={network} />
            <Pager path={path} query={query} list={items} />
            <p className="mt-3 text-xs text-faint">The amounts are sealed to the relay.</p>
          </div>
        </section>
      )}
    </RecordView>
  )
}

/** What each channel waits for, or lacks. */
function ChannelWaits({ channels, network }: { channels: readonly ChannelWait[]; network: string }) {
  return (
    <section aria-labelledby="channels" className="mb-8">
      <h2 id="channels" className="mb-2 font-semibold">
        Channels
      </h2>
      <ul className="divide-y divide-line rounded-lg border border-line bg-surface px-4 shadow-card sm:px-5">
        {channels.map(({ address, waitsFor }) => (
          <li key={address} className="py-2.5">
            <Address value={address} network={network} isWhole />
            <p className="text-soft">{waitsFor === '' ? 'No transfer waits for it.' : `Waits for ${waitsFor}.`}</p>
          </li>
        ))}
      </ul>
    </section>
  )
}

function factsOf(job: JobSummary, network: string, now: Date): Fact[] {
  const { id, organisation, organisationName, userSub, userEmail, batch, batchName, error, createdAt, endedAt } = job
  const { all, paid, failed } = job.items
  return [
    ['Status', <Status key={id} of="job" is={jobState(job, now)} />],
    ...(error && failed === 0 ? [['Why', error] as Fact] : []),
    ['Transfers', <Progress key={id} label="Transfers" settled={paid} failed={failed} total={all} />],
    ...(batch ? [['Pays the batch', <BatchLink key={id} id={batch} name={batchName ?? ''} />] as Fact] : []),
    ...(organisation
      ? [['Organisation', <OrganisationLink key={id} id={organisation} name={organisationName ?? ''} />] as Fact]
      : []),
    ['For', <User key={id} sub={userSub} email={userEmail} network={network} isWhole />],
    ['Started', <Moment key={id} at={createdAt} now={now} />],
    [endedAt ? 'Took' : 'Runs for', between(createdAt, endedAt ?? now)],
    ['Job id', <code key={id}>{id}</code>],
  ]
}
