import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BatchStatus, PAYOUT_STATUSES, type PayoutStatus } from '#drizzle/schema/directory.ts'
import { batchRow, contractorRow, insertRows, organisationRow, payoutRow } from '#lib/cli/seed/rows.ts'
import { readList } from '#lib/dashboard/list.ts'
import { PAYOUTS } from '#lib/dashboard/payouts.ts'
import type { Database } from '#lib/db/connection.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'

const UNFILTERED = { status: '', organisation: '', batch: '', contractor: '', reason: '', from: '', to: '' } as const

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await cloneDatabase()
  db = await database.store.database()
})
afterAll(() => database?.drop())

test.each<[BatchStatus, PayoutStatus[]]>([
  ['draft', ['draft', 'draft', 'canceled']],
  ['ready', ['ready', 'ready']],
  ['started', ['ready', 'ready', 'pending', 'paid', 'paid', 'paid', 'failed', 'canceled', 'canceled']],
  ['completed', ['paid', 'canceled']],
  ['failed', ['canceled']],
])('counts the payouts of a %s batch by status', async (status, statuses) => {
  const numberOf = (each: PayoutStatus) => statuses.filter((one) => one === each).length
  const employer = organisationRow({ name: status })
  const ofEmployer = { organisation: employer.id }
  const counters = {
    payoutCount: statuses.length - numberOf('canceled'),
    settledCount: numberOf('paid'),
    failedCount: numberOf('failed'),
  }
  const batch = batchRow({ ...ofEmployer, status, ...counters })
  const contractors = statuses.map(() => contractorRow(ofEmployer))
  const payouts = statuses.map((each, index) =>
    payoutRow({ ...ofEmployer, batch: batch.id, contractor: contractors[index]?.id ?? '', status: each }),
  )
  await insertRows(db, { organisations: [employer], batches: [batch], contractors, payouts })
  const { counts } = await readList(PAYOUTS, { db, now: new Date() }, { ...UNFILTERED, batch: batch.id }, {})
  expect(counts.get('')).toBe(statuses.length)
  for (const each of PAYOUT_STATUSES) expect([each, counts.get(each) ?? 0]).toEqual([each, numberOf(each)])
})
