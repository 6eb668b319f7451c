import type { Metadata, Route } from 'next'
import Link from 'next/link'
import { type BatchLine, batchStatusOf, listAllBatches } from '#lib/operator/batches.ts'
import { readIfReachable } from '#lib/operator/reading.ts'
import { between, Moment } from '../figures.tsx'
import { Frame } from '../frame.tsx'
import { addressOf, Pager, pageOf, readSearch, Tabs } from '../listing.tsx'
import { Progress } from '../progress.tsx'
import { requireOperator } from '../require-operator.ts'
import { Status } from '../status.tsx'
import { type Column, Table, Unreachable } from '../table.tsx'

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
  const query = await readSearch(searchParams)
  const { database, settings, now } = await requireOperator(addressOf('/batches', query))
  const status = batchStatusOf(query.status ?? '')
  const found = await readIfReachable(database, (db) => listAllBatches(db, { status }, pageOf(query)))
  return (
    <Frame here="/batches" title="Batches" network={settings.network.name}>
      <Tabs label="Status" path="/batches" name="status" chosen={status ?? ''} tabs={TABS} />
      {found ? (
        <>
          <Table
            caption="Batches, newest first"
            columns={columnsAt(now())}
            rows={found.items}
            keyOf={({ id }) => id}
            empty={<NoBatches isFiltered={status !== undefined} network={settings.network.name} />}
          />
          <Pager path="/batches" query={query} next={found.next} />
        </>
      ) : (
        <Unreachable />
      )}
    </Frame>
  )
}

const columnsAt = (now: Date): Column<BatchLine>[] => [
  {
    head: 'Batch',
    cell: (batch) => (
      <div className="max-w-72 min-w-0">
        <Link
          href={`/batches/${batch.id}` as Route}
          prefetch={false}
          className="font-medium break-words underline-offset-4 hover:text-accent hover:underline"
        >
          {batch.name}
        </Link>
        <div className="text-xs break-words text-faint">{batch.organisationName}</div>
        <div className="mt-1.5 md:hidden">
          <BatchProgress batch={batch} />
        </div>
      </div>
    ),
  },
  { head: 'Status', cell: ({ status }) => <Status of="batch" is={status} /> },
  { head: 'Paid', from: 'md', cell: (batch) => <BatchProgress batch={batch} /> },
  { head: 'Created', from: 'sm', isRepeated: true, cell: ({ createdAt }) => <Moment at={createdAt} now={now} /> },
  {
    head: 'Took',
    from: 'lg',
    isRepeated: true,
    isNumber: true,
    cell: ({ startedAt, completedAt }) => (startedAt && completedAt ? between(startedAt, completedAt) : '–'),
  },
]

function BatchProgress({ batch }: { batch: BatchLine }) {
  const { name, settledCount, failedCount, payoutCount } = batch
  return <Progress label={name} settled={settledCount} failed={failedCount} total={payoutCount} />
}

function NoBatches({ isFiltered, network }: { isFiltered: boolean; network: string }) {
  if (isFiltered) return <strong>No batch has this status</strong>
  return (
    <>
      <strong>No batches yet</strong>
      <p>
        An employer makes one with <code>POST /batches</code>; see the{' '}
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
