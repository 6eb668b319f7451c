import type { Metadata } from 'next'
import Link from 'next/link'
import { notFound } from 'next/navigation'
import type { PageRequest } from '#lib/http/paging.ts'
import { type BatchLine, findAnyBatch, listPayoutsOf, type PayoutLine } from '#lib/operator/batches.ts'
import { readIfReachable } from '#lib/operator/reading.ts'
import type { Service } from '#lib/server/services.ts'
import { settleByLooking } from '#lib/sponsor/looking.ts'
import { between, Moment } from '../../figures.tsx'
import { Frame } from '../../frame.tsx'
import { Hash, TransactionHash } from '../../hash.tsx'
import { addressOf, Pager, pageOf, readSearch } from '../../listing.tsx'
import { Progress } from '../../progress.tsx'
import { requireOperator } from '../../require-operator.ts'
import { Status } from '../../status.tsx'
import { type Column, Table, Unreachable } from '../../table.tsx'

export const metadata: Metadata = { title: 'A batch' }

/** One batch and what became of its payouts, while it runs and after. */
export default async function BatchPage({ params, searchParams }: PageProps<'/batches/[id]'>) {
  const [{ id }, query] = [await params, await readSearch(searchParams)]
  const path = `/batches/${encodeURIComponent(id)}`
  const service = await requireOperator(addressOf(path, query))
  const network = service.settings.network.name
  const found = await readIfReachable(service.database, (db) => read(db, service, id, pageOf(query, 200)))
  if (found && !found.batch) notFound()
  return (
    <Frame
      here="/batches"
      title={found?.batch?.name ?? 'A batch'}
      network={network}
      above={
        <p className="mb-1">
          <Link href="/batches" prefetch={false} className="text-soft underline-offset-4 hover:underline">
            <span aria-hidden="true">← </span>Batches
          </Link>
        </p>
      }
    >
      {found?.batch ? (
        <>
          <Summary batch={found.batch} now={service.now()} />
          <Table
            caption="Payouts, in the order of their instructions"
            columns={columnsFor(network, service.now())}
            rows={found.payouts.items}
            keyOf={(payout) => payout.id}
            empty={
              <>
                <strong>No payouts yet</strong>
                <p>
                  The employer adds them with <code>POST /batches/{'{id}'}/instructions</code>, then locks the batch.
                </p>
              </>
            }
          />
          <Pager path={path} query={query} next={found.payouts.next} words={{ first: 'First', further: 'More' }} />
        </>
      ) : (
        <Unreachable />
      )}
    </Frame>
  )
}

type Db = Parameters<typeof findAnyBatch>[0]

async function read(db: Db, { sponsor }: Service, id: string, page: PageRequest) {
  const known = await findAnyBatch(db, id)
  // Looking settles, here as in the API: where no process lasts, nobody else might.
  if (known?.status === 'started') await settleByLooking(db, sponsor, [known.organisation])
  const batch = known?.status === 'started' ? await findAnyBatch(db, id) : known
  const payouts = batch ? await listPayoutsOf(db, id, page) : { items: [], next: undefined }
  return { batch, payouts }
}

function Summary({ batch, now }: { batch: BatchLine; now: Date }) {
  const { status, settledCount, failedCount, payoutCount, startedAt, createdAt } = batch
  const facts = [
    ['Organisation', batch.organisationName],
    ['Status', <Status key="status" of="batch" is={status} />],
    ['Created', <Moment key="created" at={createdAt} now={now} />],
    ['Started', startedAt ? <Moment key="started" at={startedAt} now={now} /> : '–'],
    ['Took', took(batch, now)],
  ] as const
  return (
    <section aria-label="Summary" className="mb-6 rounded-lg border border-line bg-surface p-4 shadow-card sm:p-5">
      <dl className="grid grid-cols-2 gap-x-8 gap-y-4 sm:flex sm:flex-wrap">
        {facts.map(([term, value]) => (
          <div key={term} className="min-w-0">
            <dt className="text-xs text-faint">{term}</dt>
            <dd className="mt-0.5 break-words">{value}</dd>
          </div>
        ))}
      </dl>
      <div className="mt-5">
        <Progress label="Payouts" settled={settledCount} failed={failedCount} total={payoutCount} />
      </div>
    </section>
  )
}

function took({ status, startedAt, completedAt }: BatchLine, now: Date): string {
  if (startedAt && completedAt) return between(startedAt, completedAt)
  return startedAt && status === 'started' ? `${between(startedAt, now)} so far` : '–'
}

/** Under what hash a transfer was tried that does not stand on the ledger, or not as a success. */
function InnerHash({ hash }: { hash: string }) {
  return (
    <span className="text-faint">
      <Hash value={hash} /> <span className="text-xs">inner</span>
    </span>
  )
}

const columnsFor = (network: string, now: Date): Column<PayoutLine>[] => [
  {
    head: 'Contractor',
    cell: (payout) => (
      <div className="min-w-0">
        <div className="font-medium [overflow-wrap:anywhere]">{payout.contractor}</div>
        {payout.error && <p className="mt-0.5 max-w-prose text-bad">{payout.error}</p>}
        {payout.meaning && <p className="max-w-prose text-xs text-soft">{payout.meaning}</p>}
        {payout.txHash && (
          <div className="mt-0.5 md:hidden">
            <TransactionHash hash={payout.txHash} network={network} />
          </div>
        )}
      </div>
    ),
  },
  { head: 'Status', cell: ({ status }) => <Status of="payout" is={status} /> },
  { head: 'Account', from: 'lg', isRepeated: true, cell: ({ address }) => (address ? <Hash value={address} /> : '–') },
  {
    head: 'Transaction',
    from: 'md',
    cell: ({ txHash, transfer }) => {
      if (txHash) return <TransactionHash hash={txHash} network={network} />
      return transfer ? <InnerHash hash={transfer} /> : '–'
    },
  },
  {
    head: 'Paid',
    from: 'sm',
    isRepeated: true,
    cell: ({ paidAt }) => (paidAt ? <Moment at={paidAt} now={now} /> : '–'),
  },
]
