import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { BATCH_FILTERS, type BatchLine, listBatches } from '#lib/dashboard/batches.ts'
import { findFilterNames } from '#lib/dashboard/filter-names.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { batchState } from '#lib/dashboard/lateness.ts'
import { readIfReachable } from '#lib/dashboard/reading.ts'
import { Moment } from '../figures.tsx'
import { BY_TIME, ListView } from '../list-view.tsx'
import { PAYOUT_LIST } from '../payouts/payout-list.ts'
import { Progress } from '../progress.tsx'
import { addressOf, readQuery } from '../query.ts'
import { BatchLink, OrganisationLink } from '../record-links.tsx'
import { requireOperator } from '../require-operator.ts'
import { Status } from '../status.tsx'
import type { Column } from '../table.tsx'
import { BATCH_LIST } from './batch-list.ts'

export const metadata: Metadata = { title: 'Batches' }

const TABS = [
  ['', 'All'],
  ['draft', 'Draft'],
  ['ready', 'Ready'],
  ['started', 'Started'],
  ['completed', 'Completed'],
  ['failed', 'Failed'],
] as const

/** The batches of all organisations. */
export default async function BatchesPage({ searchParams }: PageProps<'/batches'>) {
  const query = await readQuery(searchParams)
  const service = await requireOperator(addressOf('/batches', query))
  const { database, settings, now } = service
  const { filters, unknown } = readFilters(BATCH_FILTERS, query)
  const data = await readIfReachable(database, async (db) => ({
    list: await listBatches(db, filters, query),
    names: await findFilterNames(db, filters),
  }))
  return (
    <ListView
      here="/batches"
      title="Batches"
      network={settings.network.name}
      path="/batches"
      query={query}
      list={data?.list}
      nouns={['batch', 'batches']}
      filters={filters}
      unknown={unknown}
      names={data?.names ?? {}}
      sorts={BY_TIME}
      tabs={{ label: 'Status', name: 'status', tabs: TABS }}
      csv={[
        { list: BATCH_LIST, of: 'These batches' },
        // Status and time filter batches, but the file of payouts would also include those of other batches.
        ...(filters.status === '' && filters.from === '' && filters.to === ''
          ? [{ list: PAYOUT_LIST, of: filters.organisation ? 'Payouts of the organisation' : 'All payouts' }]
          : []),
      ]}
      columns={columnsAt(now())}
      keyOf={({ id }) => id}
      empty={<NoBatches network={settings.network.name} />}
    />
  )
}

const columnsAt = (now: Date): Column<BatchLine>[] => [
  {
    head: 'Batch',
    isName: true,
    cell: (batch) => (
      <span className="font-medium">
        <BatchLink id={batch.id} name={batch.name} />
      </span>
    ),
    beneath: (batch) => (
      <div className="my-1 md:hidden">
        <BatchProgress batch={batch} />
      </div>
    ),
  },
  {
    head: 'Organisation',
    from: 'xl',
    isRepeated: true,
    isName: true,
    cell: ({ organisation, organisationName }) => <OrganisationLink id={organisation} name={organisationName} />,
  },
  { head: 'Status', cell: (batch) => <Status of="batch" is={batchState(batch, now)} /> },
  { head: 'Paid', from: 'md', cell: (batch) => <BatchProgress batch={batch} /> },
  { head: 'Created', from: 'sm', isRepeated: true, cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
  {
    head: 'Last progress',
    from: 'xl',
    isRepeated: true,
    cell: ({ progressedAt }) => (progressedAt ? <Moment at={progressedAt} now={now} /> : '–'),
  },
]

function BatchProgress({ batch }: { batch: BatchLine }) {
  const { name, settledCount, failedCount, payoutCount } = batch
  return <Progress label={name} settled={settledCount} failed={failedCount} total={payoutCount} />
}

function NoBatches({ network }: { network: string }) {
  return (
    <>
      <strong>No batches yet</strong>
      <p>
        An employer creates one with <code>POST /batches</code>; see the{' '}
        <Link href={'/docs' as Route} prefetch={false}>
          API reference
        </Link>
        .
        {network === 'local' && (
          <>
            {' '}
            To watch one here, run <code>npm run demo</code>.
          </>
        )}
      </p>
    </>
  )
}
