import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { batches } from '#drizzle/schema/directory.ts'
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
import { type AcknowledgeableCondition, acknowledge } from '#lib/dashboard/acknowledgements.ts'
import { readAttention } from '#lib/dashboard/overview.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { countPayouts, lockBatches } from '#lib/directory/batches/progress.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const FUTURE = new Date('2036-01-01T00:00:00Z')
const before = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000)
const ADA = { kind: 'operator', sub: 'Ada Operator' } as const

let database: TestDatabase
let db: Database
let organisation: string
beforeAll(async () => {
  database = await cloneDatabase()
  db = await database.store.database()
  const northwind = organisationRow({ name: 'Northwind' })
  organisation = northwind.id
  await insertRows(db, { organisations: [northwind] })
})
afterAll(() => database?.drop())

/** Creates a batch with a payout that failed five minutes ago. */
async function failedBatch() {
  const counts = { payoutCount: 4, settledCount: 0, failedCount: 1 }
  const batch = batchRow({ organisation, status: 'started', startedAt: before(5), ...counts })
  const contractor = contractorRow({ organisation })
  const failed = { organisation, batch: batch.id, status: 'failed', createdAt: before(5) } as const
  const payouts = [payoutRow({ ...failed, contractor: contractor.id })]
  await insertRows(db, { contractors: [contractor], batches: [batch], payouts })
  return batch.id
}

const find = async (id: string) =>
  (await readAttention(db, NOW)).items.find(({ acknowledgeable }) => acknowledgeable?.subject === id)

const acknowledgeAt = (now: Date, condition: AcknowledgeableCondition, subject: string, seen: Date) =>
  acknowledge({ db, now, actor: ADA }, { condition, subject, seen, note: 'told the employer' })

test.each([
  ['the time that the page shows, by a clock that is behind', before(60), undefined],
  ['a time in the future', NOW, FUTURE],
])('hides failures that were acknowledged up to %s, until another fails', async (_, clock, seen) => {
  const id = await failedBatch()
  const { lastEvent = NOW } = (await find(id))?.acknowledgeable ?? {}
  expect(await acknowledgeAt(clock, 'payoutsFailed', id, seen ?? lastEvent)).toBe(true)
  expect(await find(id)).toBeUndefined()
  // The clock of the process that records the failure is behind, too.
  await transact(db, async (tx) => {
    const locked = await lockBatches(tx, eq(batches.id, id))
    await countPayouts(tx, locked, { failed: 1 }, { actor: ADA, now: before(45) })
  })
  expect(await find(id)).toBeDefined()
})

test('acknowledges each condition up to its last event at most', async () => {
  const stalled = batchRow({ organisation, status: 'started', startedAt: before(9_000) })
  const waiting = contractorRow({ organisation })
  const unsent = payoutRow({ organisation, batch: stalled.id, contractor: waiting.id, status: 'ready' })
  const transfer = transferRow({ status: 'open', createdAt: before(60) })
  const failedJob = jobRow({ status: 'failed', createdAt: before(50) })
  const stalledJob = jobRow({ userSub: 'bob', createdAt: before(40) })
  await insertRows(db, {
    contractors: [waiting],
    batches: [stalled],
    payouts: [unsent],
    transfers: [transfer],
    jobs: [failedJob, stalledJob],
    items: [
      itemRow({ job: failedJob.id, outcome: 'failed', queuedAt: before(50) }),
      itemRow({ job: stalledJob.id, queuedAt: before(40) }),
      itemRow({ job: stalledJob.id, position: 1, outcome: 'paid', queuedAt: before(40), settledAt: before(30) }),
    ],
  })
  const conditions = [
    ['batchStalled', stalled.id, before(9_000)],
    ['transferOverdue', transfer.id, before(60)],
    ['jobFailed', failedJob.id, before(50)],
    ['jobStalled', stalledJob.id, before(30)],
  ] as const
  for (const [condition, id, lastEvent] of conditions) {
    expect((await find(id))?.acknowledgeable).toEqual({ condition, subject: id, lastEvent })
    expect(await acknowledgeAt(NOW, condition, id, FUTURE)).toBe(true)
    expect(await find(id)).toBeUndefined()
  }
  const rows = await db.query.acknowledgements.findMany()
  const seen = new Map(rows.map((row) => [row.subject, row.seen]))
  expect(conditions.map(([, id]) => seen.get(id))).toEqual(conditions.map(([, , lastEvent]) => lastEvent))
})

test('acknowledges no condition that a record has never had', async () => {
  const unsent = batchRow({ organisation, status: 'ready', payoutCount: 1 })
  const running = jobRow({ userSub: 'carol' })
  await insertRows(db, { batches: [unsent], jobs: [running] })
  expect(await acknowledgeAt(NOW, 'payoutsFailed', unsent.id, NOW)).toBe(false)
  expect(await acknowledgeAt(NOW, 'jobFailed', running.id, NOW)).toBe(false)
})
