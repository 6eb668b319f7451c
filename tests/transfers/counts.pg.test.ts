import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { insertRows, organisationRow, transferRow } from '#lib/cli/seed/rows.ts'
import { storedFamilies } from '#lib/dashboard/stored-metrics.ts'
import { moveWindows } from '#lib/dashboard/windows.ts'
import type { Database } from '#lib/db/connection.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { noteRefusal } from '#lib/transfers/refusals.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { findDiscrepancies } from './quota-ledger.ts'

const NOW = new Date('2026-11-20T12:30:00Z')

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await cloneDatabase()
  db = await database.store.database()
})
afterAll(() => database?.drop())
beforeEach(() => db.execute('TRUNCATE transfers, settlement_counts, organisation_hours CASCADE'))

/** Records and settles a transfer that took this many seconds. */
async function settle(seconds: number): Promise<void> {
  const settledAt = new Date(NOW.getTime() + seconds * 1000)
  await insertRows(db, { transfers: [transferRow({ status: 'succeeded', createdAt: NOW, settledAt })] })
}

const samplesOf = async (name: string) =>
  (await storedFamilies(db, NOW)).find((family) => family.name === name)?.samples ?? []

test('adds up settlement times exactly, and counts none below zero', async () => {
  for (const seconds of [0.1, 0.2, 0.3, 0.7, 1.1, -5]) await settle(seconds)
  const samples = await samplesOf('payroll_settlement_seconds')
  expect(samples.find(({ suffix }) => suffix === '_sum')?.value).toBe(2.4)
  expect(samples.find(({ suffix }) => suffix === '_count')?.value).toBe(6)
})

test('counts below each bound of the histogram the times that are shorter', async () => {
  const bounds = async () =>
    (await samplesOf('payroll_settlement_seconds')).flatMap(({ labels: { le }, value }) =>
      le === undefined ? [] : [[Number(le.replace('+Inf', 'Infinity')), value] as const],
    )
  const times = (await bounds()).flatMap(([bound]) => (bound < Infinity ? [bound - 0.001, bound] : []))
  expect(times.length).toBeGreaterThan(20)
  for (const seconds of [...times, 86_400]) await settle(seconds)
  for (const [bound, below] of await bounds()) {
    expect([bound, below]).toEqual([bound, [...times, 86_400].filter((seconds) => seconds < bound).length])
  }
})

test('counts refusals beyond the audit entries that were dropped', async () => {
  const refuse = (source: string) =>
    noteRefusal(db, { hashHex: 'h', source } as SignedTransaction, { reason: 'float' }, NOW)
  await refuse('GA')
  await db.execute('ALTER TABLE audit_log DISABLE TRIGGER audit_log_append_only')
  await db.execute('DELETE FROM audit_log')
  // Only the first refusal of an account in an hour has an entry.
  for (const account of ['GB', 'GB']) await refuse(account)
  expect(await samplesOf('payroll_refusals_total')).toEqual([{ labels: { reason: 'float' }, value: 2 }])
})

test('keeps the hours of the longest chart', async () => {
  await settle(5)
  const hours = async () => (await db.query.settlementCounts.findMany()).map(({ hour }) => hour)
  expect(await hours()).toEqual(['2026-11-20T12', 'ever'])
  await moveWindows(db, new Date('2026-12-22T12:30:00Z'))
  expect(await hours()).toHaveLength(2)
  await moveWindows(db, new Date('2026-12-22T13:30:00Z'))
  expect(await hours()).toEqual(['ever'])
})

test('keeps the sums of an organisation equal to its hours while transfers of a leaving hour are settled', async () => {
  const organisation = organisationRow()
  await insertRows(db, { organisations: [organisation] })
  const fields = { status: 'succeeded', feeCharged: 7n, organisation: organisation.id } as const
  const hours = [...Array(40).keys()].map((hour) => new Date(NOW.getTime() - hour * 3_600_000))
  const settleAll = () =>
    Promise.all(hours.map((createdAt) => insertRows(db, { transfers: [transferRow({ ...fields, createdAt })] })))
  await settleAll()
  await Promise.all([settleAll(), ...hours.map(() => moveWindows(db, NOW))])
  expect(await findDiscrepancies(db)).toEqual([])
  await moveWindows(db, NOW)
  expect(await findDiscrepancies(db)).toEqual([])
  expect(await db.query.organisationCosts.findMany()).toMatchObject([
    { dayTransfers: 48, dayFees: 336n, monthTransfers: 80 },
  ])
})
