import { eq } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { auditLog } from '#drizzle/schema/audit.ts'
import { type BatchStatus, batches, contractors, type PayoutStatus, payouts } from '#drizzle/schema/directory.ts'
import { batchRow, insertRows, payoutRow } from '#lib/cli/seed/rows.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon, idOf, keyOf } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

let service: TestService<'fake'>
let session: string
let users = 12_000

beforeAll(async () => {
  service = await openTestService(atNoon())
})
afterAll(() => service.close())
beforeEach(async () => {
  captureLog()
  users += 1
  session = await service.wallet(accountOf(users))
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** A payout of `contractor` in every status, each in a separate batch. */
async function createPayoutsInEveryStatus(contractor: string): Promise<void> {
  const [row] = await service.db.select().from(contractors).where(eq(contractors.id, contractor))
  const organisation = row?.organisation ?? ''
  const cases: [PayoutStatus, BatchStatus, object][] = [
    ['draft', 'draft', { payoutCount: 1 }],
    ['ready', 'ready', { payoutCount: 1 }],
    ['pending', 'started', { payoutCount: 1 }],
    ['paid', 'completed', { payoutCount: 1, settledCount: 1 }],
    ['failed', 'failed', { payoutCount: 1, failedCount: 1 }],
  ]
  for (const [status, batchStatus, counts] of cases) {
    const batch = batchRow({ organisation, name: status, status: batchStatus, ...counts })
    const payout = payoutRow({ organisation, batch: batch.id, contractor, status })
    await insertRows(service.db, { batches: [batch], payouts: [payout] })
  }
}

/** The status of each payout with its batch's status and counts, by batch name. */
async function readStatuses(contractor: string): Promise<Record<string, unknown[]>> {
  const rows = await service.db
    .select({ name: batches.name, status: payouts.status, batch: batches.status, count: batches.payoutCount })
    .from(payouts)
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .where(eq(payouts.contractor, contractor))
  return Object.fromEntries(rows.map(({ name, status, batch, count }) => [name, [status, batch, count]]))
}

const AFTER = {
  draft: ['canceled', 'draft', 0],
  ready: ['canceled', 'ready', 0],
  pending: ['pending', 'started', 1],
  paid: ['paid', 'completed', 1],
  failed: ['failed', 'failed', 1],
}

describe.each<[string, (id: string) => Promise<{ status: number }>]>([
  ['deactivating', (id) => service.ask('PATCH', `/contractors/${id}`, { session, body: { status: 'inactive' } })],
  ['removing', (id) => service.ask('DELETE', `/contractors/${id}`, { session })],
])('%s a contractor', (_name, act) => {
  test('cancels its unsent payouts, removes them from the counts, and keeps the rest', async () => {
    service.ledger.register(accountOf(13_000), keyOf(1))
    const id = idOf(
      await service.ask('POST', '/contractors', { session, body: { name: 'Ann', address: accountOf(13_000) } }),
    )
    await createPayoutsInEveryStatus(id)
    expect((await act(id)).status).toBe(200)
    expect(await readStatuses(id)).toEqual(AFTER)
    const entries = await service.db
      .select()
      .from(auditLog)
      .where(eq(auditLog.actorSub, accountOf(users)))
    expect(entries.filter(({ action }) => action === 'payout.canceled')).toHaveLength(2)
  })

  test('does not cancel payouts of other contractors', async () => {
    const [ann, bob] = [
      idOf(await service.ask('POST', '/contractors', { session, body: { name: 'Ann' } })),
      idOf(await service.ask('POST', '/contractors', { session, body: { name: 'Bob' } })),
    ]
    await createPayoutsInEveryStatus(bob)
    const before = await readStatuses(bob)
    await act(ann)
    expect(await readStatuses(bob)).toEqual(before)
  })
})

test('leaves payouts canceled when the contractor becomes active again', async () => {
  const id = idOf(await service.ask('POST', '/contractors', { session, body: { name: 'Ann' } }))
  await createPayoutsInEveryStatus(id)
  for (const status of ['inactive', 'ready', 'inactive']) {
    expect((await service.ask('PATCH', `/contractors/${id}`, { session, body: { status } })).body.status).toBe(status)
  }
  expect(await readStatuses(id)).toEqual(AFTER)
})
