import { jobState } from '#lib/dashboard/lateness.ts'
import { findJobChannels } from '#lib/dashboard/paying-channels.ts'
import { readJobPage } from '#lib/dashboard/record-pages.ts'
import { between, Moment } from '../../figures.tsx'
import { Address } from '../../hash.tsx'
import { Pager } from '../../pager.tsx'
import { RecordLink, User } from '../../record-links.tsx'
import { recordPage } from '../../record-page.tsx'
import { Section } from '../../section.tsx'
import { Status } from '../../status.tsx'
import { Table } from '../../table.tsx'
import { ITEM_COLUMNS } from '../item-columns.tsx'
import { JobProgress } from '../job-list.tsx'

export const metadata = { title: 'A job' }

/** A relay job or a run, with its transfers. */
export default recordPage({
  type: 'job',
  here: '/jobs',
  read: async (db, { id, query, service, now }) => {
    const page = await readJobPage(db, id, now, query)
    return page && { ...page, channels: await findJobChannels(db, page.record, service.settings.token, now) }
  },
  title: (job, id) => `${job?.batch ? 'Run' : 'Job'} ${id.slice(0, 8)}`,
  facts: (job, { now, network }) => {
    const { id, organisation, batch, createdAt, endedAt } = job
    return {
      Status: <Status is={jobState(job, now)} />,
      Why: job.items.failed === 0 && job.error,
      Transfers: <JobProgress job={job} />,
      'Pays the batch': batch && <RecordLink type="batch" id={batch} name={job.batchName} />,
      Organisation: organisation && <RecordLink type="organisation" id={organisation} name={job.organisationName} />,
      For: <User sub={job.userSub} email={job.userEmail} network={network} isWhole />,
      Started: <Moment at={createdAt} now={now} />,
      [endedAt ? 'Took' : 'Runs for']: between(createdAt, endedAt ?? now),
      'Job id': <code>{id}</code>,
    }
  },
  content: ({ items, channels }, { path, query, network, now }) => (
    <>
      {channels.length > 0 && (
        <Section id="channels" title="Channels">
          <ul className="divide-y divide-line rounded-lg border border-line bg-surface px-4 shadow-card sm:px-5">
            {channels.map(({ address, waitsFor }) => (
              <li key={address} className="py-2.5">
                <Address value={address} network={network} isWhole />
                <p className="text-soft">{waitsFor === '' ? 'No transfer waits for it.' : `Waits for ${waitsFor}.`}</p>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section id="transfers" title="Transfers">
        <Table
          caption="Transfers of the job in order; on the first page, the failed ones come first"
          view={{ now, network }}
          columns={ITEM_COLUMNS}
          rows={items.items}
          keyOf={({ position }) => String(position)}
        />
        <Pager path={path} query={query} list={items} />
        <p className="mt-3 text-xs text-faint">The amounts are sealed to the relay.</p>
      </Section>
    </>
  ),
})
