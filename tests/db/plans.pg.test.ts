import { Keypair } from '@stellar/stellar-sdk'
import type { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AUDIT_FILTERS, listAudit } from '#lib/dashboard/audit.ts'
import { BATCH_FILTERS, listBatches, listMovingBatches } from '#lib/dashboard/batches.ts'
import { CONTRACTOR_FILTERS, listContractors } from '#lib/dashboard/contractors.ts'
import { readFilters } from '#lib/dashboard/filters.ts'
import { JOB_FILTERS, listJobs } from '#lib/dashboard/jobs.ts'
import type { PageRequest } from '#lib/dashboard/list.ts'
import { listOrganisations, ORGANISATION_FILTERS } from '#lib/dashboard/organisations.ts'
import { readAttention } from '#lib/dashboard/overview.ts'
import { listPayouts, PAYOUT_FILTERS, readPayouts } from '#lib/dashboard/payouts.ts'
import { readPulse } from '#lib/dashboard/pulse.ts'
import * as pages from '#lib/dashboard/record-pages.ts'
import { listRefusals, REFUSAL_FILTERS } from '#lib/dashboard/refusals.ts'
import { searchRecords } from '#lib/dashboard/search.ts'
import { readSpending } from '#lib/dashboard/spending.ts'
import { readTraffic } from '#lib/dashboard/traffic.ts'
import { TRANSFER_FILTERS } from '#lib/dashboard/transfer-filters.ts'
import { listTransfers } from '#lib/dashboard/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { runChores } from '#lib/server/maintenance.ts'
import { rollUp } from '#lib/transfers/rollups.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { type FilledRecords, fillDatabase } from '../support/filled-database.ts'
import { collectPlans, explainAll } from '../support/plans.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

const TOKEN = 'a token for metrics'

let database: TestDatabase
let service: TestService<'none'>
let records: FilledRecords
let collected: ReturnType<typeof collectPlans>

beforeAll(async () => {
  database = await startDatabase()
  records = await fillDatabase(database.url, 100_000)
  const filled = await database.store.database()
  while ((await rollUp(filled, new Date())) > 0);
  await explainAll(database.url)
  service = await openTestService({
    database,
    variables: { METRICS_TOKEN: TOKEN, SPONSOR_SEED: Keypair.random().secret() },
  })
  const db = await service.running.database()
  collected = collectPlans((db as unknown as { $client: Pool }).$client)
})
afterAll(async () => {
  await service?.close()
  await database?.drop()
})

/** Requires that `work` sends statements, none of which reads all of a growing table. */
async function expectIndexed(work: () => Promise<unknown>): Promise<void> {
  collected.take()
  await work()
  const { plans, scans } = collected.take()
  expect(plans).toBeGreaterThan(0)
  expect(scans).toEqual([])
}

test.each([
  ['/me'],
  ['/contractors'],
  ['/contractors?limit=100'],
  ['/contractors?limit=100&q=Contractor'],
  ['/contractors?limit=100&status=ready'],
  ['/contractors/{contractor}'],
  ['/batches'],
  ['/batches?limit=100&status=completed'],
  ['/batches/{batch}'],
  ['/batches/{batch}/status'],
  ['/payouts'],
  ['/payouts?limit=100'],
  ['/payouts?batchId={batch}'],
  ['/payouts?contractorId={contractor}'],
  ['/payouts?status=failed'],
  ['/payouts?status=paid'],
  ['/payouts?from=2026-01-01&to=2026-02-01'],
  ['/batch/{job}'],
])('GET %s reads no growing table whole', async (path) => {
  const of = async (employer: string, own: Record<string, string>) => {
    const session = await service.wallet(employer)
    const address = path.replace(/\{(\w+)\}/, (_, name: string) => own[name] ?? '')
    await expectIndexed(async () =>
      expect(await service.ask('GET', address, { session })).toMatchObject({ status: 200 }),
    )
  }
  await of(records.employer, { ...records })
  if (!/contractor|job/.test(path)) await of(records.largeEmployer, { batch: records.largeBatch })
})

test('GET /metrics reads no growing table whole', () =>
  expectIndexed(() => service.ask('GET', '/metrics', { headers: { authorization: `Bearer ${TOKEN}` } })))

test('the chores read no growing table whole', () => expectIndexed(() => runChores(service.running)))

test.each(
  Object.entries({
    overview: (db, now) => readAttention(db, now),
    'batches in progress': (db) => listMovingBatches(db, 20),
    'chart of a day': (db, now) => readTraffic(db, now, '24h'),
    'chart of a month': (db, now) => readTraffic(db, now, '30d'),
    spending: (db, now) => readSpending(db, 'GSPONSOR', now),
    pulse: (db) => readPulse(db),
    transfer: (db, now) => pages.readTransferPage(db, records.transfer, now),
    payout: (db) => pages.readPayoutPage(db, records.payout),
    batch: (db, now) => pages.readBatchPage(db, records.batch, now),
    'large batch': (db, now) => pages.readBatchPage(db, records.largeBatch, now),
    job: (db, now) => pages.readJobPage(db, records.job, now),
    contractor: (db) => pages.readContractorPage(db, records.contractor),
    organisation: (db, now) => pages.readOrganisationPage(db, records.organisation, now),
  } satisfies Record<string, (db: Database, now: Date) => Promise<unknown>>),
)('the page of %s reads no growing table whole', async (_, read) => {
  const db = await service.running.database()
  await expectIndexed(() => read(db, new Date()))
})

type Lists = (db: Database, filters: never, page: PageRequest, now: Date) => Promise<{ next: string | undefined }>

const LISTS = {
  audit: [AUDIT_FILTERS, listAudit],
  batches: [BATCH_FILTERS, listBatches],
  contractors: [CONTRACTOR_FILTERS, listContractors],
  jobs: [JOB_FILTERS, listJobs],
  organisations: [ORGANISATION_FILTERS, listOrganisations],
  refusals: [REFUSAL_FILTERS, listRefusals],
  transfers: [TRANSFER_FILTERS, listTransfers],
} satisfies Record<string, [object, Lists]>

/** A value of each filter that a list can have. */
const valuesOfFilters = (): Record<string, string> => ({
  ...records,
  account: records.employer,
  actor: `ledger:${records.employer}`,
  record: records.transfer,
  action: 'payout.paid',
  request: 'a-request',
  status: 'failed',
  view: 'failed',
  sort: 'oldest',
  from: new Date(Date.now() - 40 * 86_400_000).toISOString().slice(0, 10),
  to: new Date(Date.now() - 39 * 86_400_000).toISOString().slice(0, 10),
})

const FILTERED = Object.entries(LISTS).flatMap(([list, [checks]]) =>
  ['', ...Object.keys(checks)].map((name) => [list, name] as const),
)

test.each(FILTERED)('the list of %s, filtered by %s, reads no growing table whole', async (list, name) => {
  const [checks, read]: [object, Lists] = LISTS[list as keyof typeof LISTS]
  const value =
    name === 'reason' && list === 'refusals'
      ? 'quota-transfers'
      : name === 'reason'
        ? list === 'jobs'
          ? 'the recipient is not registered'
          : 'txFailed'
        : valuesOfFilters()[name]
  const none = Object.fromEntries(Object.keys(checks).map((filter) => [filter, '']))
  const filters = { ...none, ...(name && { [name]: value }) } as never
  const db = await service.running.database()
  await expectIndexed(async () => {
    const { next } = await read(db, filters, {}, new Date())
    if (next) await read(db, filters, { after: next }, new Date())
  })
})

test.each(['service:relay', 'service:registration check', 'service:registration sweep', 'operator:Ada'])(
  'the entries of %s are found by the index of actors',
  async (actor) => {
    const db = await service.running.database()
    collected.take()
    await listAudit(db, { ...readFilters(AUDIT_FILTERS, {}).filters, actor }, {})
    const indexes = collected.take().indexes.filter((name) => name.startsWith('audit_log'))
    expect(new Set(indexes)).toEqual(new Set(['audit_log_actor']))
  },
)

test.each([
  ['batch.removed', 'audit_log_newest_of_action'],
  ['payout.paid', 'audit_log_pkey'],
] as const)('the entries of %s are found by the index %s', async (action, index) => {
  const db = await service.running.database()
  collected.take()
  await listAudit(db, { ...readFilters(AUDIT_FILTERS, {}).filters, action }, {})
  const indexes = collected.take().indexes.filter((name) => name.startsWith('audit_log'))
  expect(new Set(indexes)).toEqual(new Set([index]))
})

test.each(['hash', 'address', 'organisation', 'employer'] as const)(
  'the search for an %s reads no growing table whole',
  (name) => expectIndexed(async () => searchRecords(await service.running.database(), records[name])),
)

test.each(['Employer 7', 'c7@example.com', 'Contractor', 'a-request'])(
  'the search for %s reads no growing table whole',
  (text) => expectIndexed(async () => searchRecords(await service.running.database(), text)),
)

test('the list of a batch’s payouts reads no growing table whole', () =>
  expectIndexed(async () => {
    const none = Object.fromEntries(Object.keys(PAYOUT_FILTERS).map((filter) => [filter, ''])) as Parameters<
      typeof listPayouts
    >[1]
    await listPayouts(await service.running.database(), { ...none, batch: records.largeBatch }, {})
  }))

/** The filters of a list, of which none is set. */
const WITHOUT_FILTERS = {
  payouts: { ...readFilters(PAYOUT_FILTERS, {}).filters },
  transfers: { ...readFilters(TRANSFER_FILTERS, {}).filters },
}

test.each(['', 'organisation', 'contractor'] as const)(
  'a part of the file of payouts, filtered by %s, reads no growing table whole',
  async (name) => {
    const db = await service.running.database()
    const filters = { ...WITHOUT_FILTERS.payouts, ...(name !== '' && { [name]: records[name] }) }
    await expectIndexed(() => readPayouts(db, filters).next())
  },
)

test.each([
  ['the failed transfers of an organisation', () => ({ organisation: records.largeOrganisation, view: 'failed' })],
  ['the transfers of an organisation by fee', () => ({ organisation: records.largeOrganisation, sort: 'fee' })],
  ['the transfers of the account that sent most', () => ({ account: records.largeEmployer })],
  ['the transfers of the largest batch', () => ({ batch: records.largeBatch })],
])('the page before the second of %s reads no growing table whole', async (_, query) => {
  const db = await service.running.database()
  const filters = { ...WITHOUT_FILTERS.transfers, ...query() }
  await expectIndexed(async () => {
    const { next } = await listTransfers(db, filters, {})
    const second = await listTransfers(db, filters, { after: next })
    await listTransfers(db, filters, { before: second.previous })
  })
})
