import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import {
  batchRow,
  contractorRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { findJob, JOBS, listItems } from '#lib/dashboard/jobs.ts'
import type { LineState } from '#lib/dashboard/line-state.ts'
import { readList, readWholeList } from '#lib/dashboard/list.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Line } from '#lib/transfers/line.ts'
import { cloneDatabase } from '../support/database.ts'

const error = 'recipient-unregistered'

const organisation = organisationRow({ name: 'Northwind' })
const batch = batchRow({ organisation: organisation.id, status: 'started' })
const ada = contractorRow({ organisation: organisation.id, name: 'Ada', address: 'GADA' })
const grace = contractorRow({ organisation: organisation.id, name: 'Grace', address: 'GGRACE' })
const payout = payoutRow({ organisation: organisation.id, batch: batch.id, contractor: ada.id, status: 'ready' })
const terms = { batch: batch.id, manifest: 'm', signature: 's', quotaDay: '2026-11-20', userKind: 'ledger' as const }
const run = jobRow({ ...terms, status: 'completed' })
const toAda = jobRow({ status: 'completed' })
const toGrace = jobRow({ status: 'failed' })
const large = jobRow({ userSub: 'large', status: 'failed' })

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
beforeAll(async () => {
  clone = await cloneDatabase()
  db = await clone.store.database()
  const failed = new Set([3, 120, 249])
  await insertRows(db, {
    organisations: [organisation],
    contractors: [ada, grace],
    batches: [batch],
    payouts: [payout],
    jobs: [run, toAda, toGrace, large],
    items: [
      itemRow({ job: run.id, payout: payout.id, spender: 'G', recipient: 'GELSEWHERE', outcome: 'paid' }),
      itemRow({ job: toAda.id, recipient: 'GADA', outcome: 'paid' }),
      itemRow({ job: toGrace.id, recipient: 'GGRACE', outcome: 'failed', error }),
      ...Array.from({ length: 250 }, (_, position) =>
        itemRow({
          job: large.id,
          position,
          ...(failed.has(position) ? { outcome: 'failed', error: 'e' } : { outcome: 'paid' }),
        }),
      ),
    ],
  })
})
afterAll(() => clone.drop())

/** The ids of the jobs that a query lists and exports. */
async function find(query: Record<string, string>): Promise<string[]> {
  const { filters, unknown } = readFilters(JOBS.filters, query)
  expect(unknown).toEqual([])
  const context = { db, now: new Date() }
  const { rows, total } = await readList(JOBS, context, filters, {})
  const exported: string[] = []
  for await (const part of await readWholeList(JOBS, context, filters)) exported.push(...part.map(({ id }) => id))
  expect([rows.length, exported]).toEqual([total, rows.map(({ id }) => id)])
  return rows.map(({ id }) => id).sort()
}

test('lists the runs and jobs that pay a contractor', async () => {
  expect(await find({ contractor: ada.id })).toEqual([run.id, toAda.id].sort())
  expect(await find({ contractor: grace.id })).toEqual([toGrace.id])
  expect(await find({ contractor: grace.id, status: 'completed' })).toEqual([])
})

test('lists the jobs with a line that failed for a reason', async () => {
  expect(await find({ reason: error })).toEqual([toGrace.id])
  expect(await find({ reason: error, contractor: ada.id })).toEqual([])
  expect(await find({ reason: 'no job has this' })).toEqual([])
  expect(readFilters(JOBS.filters, { reason: 'two\nlines' }).unknown).toHaveLength(1)
})

test('reads the lines of a large job in pages, with its failed ones first, and counts all of them', async () => {
  expect((await findJob(db, large.id))?.items).toEqual({ all: 250, paid: 247, failed: 3 })
  const positionsOf = ({ items }: Awaited<ReturnType<typeof listItems>>) => items.map(({ position }) => position)
  const first = await listItems(db, large.id, {})
  expect(positionsOf(first).slice(0, 5)).toEqual([3, 120, 249, 0, 1])
  expect(positionsOf(first)).toHaveLength(52)
  const second = await listItems(db, large.id, { after: first.next ?? '' })
  expect(positionsOf(second)).toEqual(Array.from({ length: 50 }, (_, n) => 50 + n))
  const rest: number[] = []
  for (let next = second.next; next; ) {
    const page = await listItems(db, large.id, { after: next })
    rest.push(...positionsOf(page))
    next = page.next
  }
  expect(rest).toEqual(Array.from({ length: 150 }, (_, n) => 100 + n))
  expect(await listItems(db, large.id, { before: second.previous ?? '' })).toEqual(first)
})

test('shows what each line is doing, and its last transfer', async () => {
  const job = jobRow({ userSub: 'states' })
  const [past, future] = [new Date('2020-01-01'), new Date('2100-01-01')]
  const lines: [LineState, line: Partial<Line>, last?: TransferStatus][] = [
    ['waiting', {}],
    ['preparing', { channel: 'G', leasedUntil: future }],
    // Its host has died.
    ['waiting', { channel: 'G', leasedUntil: past }],
    ['sent', {}, 'open'],
    ['waiting', {}, 'expired'],
    ['paid', { outcome: 'paid' }, 'succeeded'],
    ['canceled', { outcome: 'canceled' }],
  ]
  const transfers = lines.flatMap(([, , status], linePosition) => {
    const of = { account: `G${linePosition}`, lineJob: job.id, linePosition }
    return status ? [transferRow({ ...of, status: 'failed', createdAt: past }), transferRow({ ...of, status })] : []
  })
  const items = lines.map(([, line], position) => itemRow({ job: job.id, position, ...line }))
  await insertRows(db, { jobs: [job], items, transfers })
  const { items: shown } = await listItems(db, job.id, {})
  expect(shown.map(({ state }) => state)).toEqual(lines.map(([state]) => state))
  const last = (position: number) => transfers.findLast(({ linePosition }) => linePosition === position)?.id ?? null
  expect(shown.map(({ transfer }) => transfer)).toEqual([...lines.keys()].map(last))
})
