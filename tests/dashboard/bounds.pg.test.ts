import { Networks, StrKey } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { batchRow, insertRows, jobRow, organisationRow } from '#lib/cli/seed/rows.ts'
import { listMovingBatches } from '#lib/dashboard/batches.ts'
import { PAGE_SIZE, readList } from '#lib/dashboard/list.ts'
import { ORGANISATIONS } from '#lib/dashboard/organisations.ts'
import { findBatchRun } from '#lib/dashboard/paying-channels.ts'
import { readPulse } from '#lib/dashboard/pulse.ts'
import { searchRecords } from '#lib/dashboard/search.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import { formatManifest } from '#lib/wallet/manifest.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'

/** More records than a page counts. */
const MANY = MAX_COUNTED + 50
const NOW = new Date('2026-11-20T12:30:00Z')
const REQUEST = 'one-id-for-all'

const account = (digit: number) => StrKey.encodeEd25519PublicKey(new Uint8Array(32).fill(digit))
const CHANNEL = account(1)

const organisation = organisationRow()
const batch = batchRow({ organisation: organisation.id, status: 'started' })

let database: CapturedDatabase
beforeAll(async () => {
  database = await openCaptured()
  const { db } = database
  const delegations = [{ channel: CHANNEL, liveUntilLedger: 1_000 }]
  const terms = { passphrase: Networks.TESTNET, token: StrKey.encodeContract(new Uint8Array(32)), batch: batch.id }
  const manifest = formatManifest({ ...terms, account: account(9), delegations, payouts: [] })
  const signed = { batch: batch.id, manifest, signature: 'signature', quotaDay: '2026-11-20' }
  const run = jobRow({ userKind: 'ledger', userSub: account(9), createdAt: NOW, ...signed })
  await insertRows(db, { organisations: [organisation], batches: [batch], jobs: [run] })
  const every = sql`generate_series(1, ${MANY}) AS n`
  await db.execute(sql`INSERT INTO batches (organisation, name, status, started_at, progressed_at)
    SELECT ${organisation.id}, 'b', 'started', now(), now() FROM ${every}`)
  await db.execute(sql`INSERT INTO contractors (id, organisation, name, status, invite_expires_at)
    SELECT md5('c' || n)::uuid, ${organisation.id}, 'c', 'ready', now() FROM ${every}`)
  await db.execute(sql`INSERT INTO payouts (id, organisation, batch, contractor, status, encrypted_amount)
    SELECT md5('p' || n)::uuid, ${organisation.id}, ${batch.id}, md5('c' || n)::uuid, 'ready', 'sealed' FROM ${every}`)
  await db.execute(sql`INSERT INTO relay_lines (job, position, payout, spender, live_until, sealed_amount, quota_account)
    SELECT ${run.id}, n, md5('p' || n)::uuid, ${CHANNEL}, 1000000, 'sealed', ${account(9)} FROM ${every}`)
  await db.execute(sql`INSERT INTO transfers (id, kind, account, recipient, sequence_number, quota_day, bid, recorded_ledger, status, hash, settled_at)
    SELECT md5('t' || n)::uuid, 'transfer', ${account(9)}, ${account(8)}, n, '2026-11-20', 1, 1, 'succeeded', 'h' || n, now() FROM ${every}`)
  await db.execute(sql`INSERT INTO audit_log (at, actor_kind, actor_sub, action, subject_id, request_id, detail)
    SELECT now(), 'ledger', ${account(9)}, 'transfer.sponsored', 'h' || n, ${REQUEST}, jsonb_build_object('transfer', md5('t' || n)::uuid)
    FROM ${every}`)
  await db.execute(sql`INSERT INTO organisations (name) SELECT 'o' || n FROM ${every}`)
  await db.execute(
    sql`UPDATE organisation_costs SET day_fees = sequence * 7919 % 1000, month_fees = sequence * 7907 % 10007`,
  )
  await database.pool.query('VACUUM ANALYZE')
})
afterAll(() => database?.close())

interface Plan {
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

/**
 * The most rows that a step of a query that `work` sends reads, and the most that a query returns.
 * @param part of the queries that count
 */
async function costOf(work: () => Promise<unknown>, part = ''): Promise<{ read: number; returned: number }> {
  const [read, returned]: [number[], number[]] = [[], []]
  const visit = (plan: Plan) => {
    read.push((plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'])
    plan.Plans?.forEach(visit)
  }
  for (const { query, params } of await database.capture(work)) {
    if (!query.includes(part)) continue
    const { rows } = await database.pool.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${query}`, params)
    const { Plan: plan } = rows[0]['QUERY PLAN'][0] as { Plan: Plan }
    visit(plan)
    returned.push(plan['Actual Rows'])
  }
  return { read: Math.max(...read), returned: Math.max(...returned) }
}

test('the pulse reads a bounded number of open lines', async () => {
  expect(await costOf(() => readPulse(database.db))).toMatchObject({ read: MAX_COUNTED + 1 })
})

test('counts the batches in progress up to 10,000', async () => {
  expect(await listMovingBatches(database.db, 3)).toMatchObject({ total: MAX_COUNTED + 1, batches: { length: 3 } })
})

test('reads the state of a run per channel, not per line', async () => {
  expect((await costOf(() => findBatchRun(database.db, batch.id, NOW))).returned).toBe(1)
  expect((await findBatchRun(database.db, batch.id, NOW))?.channels).toMatchObject([{ paid: 0, left: MANY }])
})

test('a search reads the last entries of a request id that was used for many transfers', async () => {
  expect((await costOf(() => searchRecords(database.db, REQUEST))).read).toBeLessThan(100)
  expect(await searchRecords(database.db, REQUEST)).toMatchObject({ hits: { length: 20 }, hasMore: true })
})

test.each(['24h', '30d'] as const)('organisations sorted by their fees of %s are read from an index', async (sort) => {
  const read = (page: { after?: string | undefined }, from = '') =>
    readList(ORGANISATIONS, { db: database.db, now: NOW }, { sort, from, to: '' }, page)
  const { rows, next } = await read({})
  expect(rows.map(({ costs }) => costs[sort].fees)).toEqual(
    rows.map(({ costs }) => costs[sort].fees).toSorted((one, other) => Number(other - one)),
  )
  const costOfPage = async (...of: Parameters<typeof read>) =>
    (await costOf(() => read(...of), 'organisation_costs')).read
  expect(await costOfPage({})).toBe(PAGE_SIZE + 1)
  expect(await costOfPage({ after: next })).toBeLessThan(3 * PAGE_SIZE)
  // None of the organisations with the highest fees was founded on these days.
  expect(await costOfPage({}, '2100-01-01')).toBeLessThanOrEqual(MAX_COUNTED)
})
