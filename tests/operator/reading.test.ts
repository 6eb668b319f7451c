import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Page, PageRequest } from '#lib/http/paging.ts'
import { listAudit } from '#lib/operator/audit.ts'
import { listAllBatches, listRunningBatches } from '#lib/operator/batches.ts'
import { listAllContractors } from '#lib/operator/contractors.ts'
import { explainTransfer } from '#lib/operator/explanation.ts'
import { listJobs } from '#lib/operator/jobs.ts'
import { listRefusals } from '#lib/operator/refusals.ts'
import { readSpending } from '#lib/operator/spending.ts'
import { readTraffic } from '#lib/operator/traffic.ts'
import { listTransfers, TRANSFER_VIEWS, type TransferView } from '#lib/operator/transfers.ts'
import { listTroubles } from '#lib/operator/troubles.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'

const NOW = new Date('2026-11-20T12:30:00Z')
const ALL = 20_000

let database: CapturedDatabase
let pool: CapturedDatabase['pool']
let db: Database

beforeAll(async () => {
  database = await openCaptured()
  ;({ db, pool } = database)
  // A transfer every ten minutes back from now, each settled within one to four seconds; one in a hundred failed.
  await pool.query(
    `INSERT INTO sponsored_transfers (inner_hash, outer_hash, account, recipient, sponsor, envelope, bid, max_time,
       quota_day, since_ledger, status, result_code, contract_error, ledger_hash, ledger, fee_charged, created_at, settled_at)
     SELECT lpad(to_hex(n), 64, '0'), 'e' || lpad(to_hex(n), 63, '0'), 'G' || n % 50, 'G', 'S', 'x', 200, 0, 'd', 1,
       CASE WHEN n % 100 = 3 THEN 'failed' ELSE 'success' END, 'txSuccess', CASE WHEN n % 100 = 3 THEN 3506 END, 'h', 1, 100,
       $1::timestamptz - n * interval '10 minutes',
       $1::timestamptz - n * interval '10 minutes' + (1 + n % 4) * interval '1 second'
     FROM generate_series(0, ${ALL} - 1) n`,
    [NOW.toISOString()],
  )
  await pool.query(`INSERT INTO quotas (account, day, used, held, count)
    SELECT 'G' || n % 100, (date '2026-11-20' - n / 100)::text, n % 100, 0, 1 FROM generate_series(0, ${ALL} - 1) n
    UNION ALL SELECT '*', '2026-11-20', 7, 5, 100`)
  await pool.query(`INSERT INTO organisations (name) VALUES ('one')`)
  await pool.query(
    `INSERT INTO batches (organisation, name, status, created_at)
    SELECT id, 'b' || n, CASE WHEN n = 17 THEN 'started' ELSE 'completed' END, $1::timestamptz - n * interval '1 minute'
    FROM organisations, generate_series(0, ${ALL} - 1) n`,
    [NOW.toISOString()],
  )
  await pool.query(
    `INSERT INTO contractors (organisation, name, status, invite_expires_at, created_at)
    SELECT id, 'c' || n, 'invited', now(), $1::timestamptz - n / 3 * interval '1 minute'
    FROM organisations, generate_series(0, ${ALL} - 1) n`,
    [NOW.toISOString()],
  )
  // Forty jobs of one and the same moment, of 500 items each; the first of each failed.
  await pool.query(
    `INSERT INTO batch_jobs (id, user_kind, user_sub, status, created_at, ended_at)
    SELECT gen_random_uuid(), 'ledger', 'G' || n, 'failed', $1, $1 FROM generate_series(1, 40) n`,
    [NOW.toISOString()],
  )
  await pool.query(
    `INSERT INTO batch_items (job, position, status, quota_account, hash, error, queued_at, settled_at)
    SELECT id, n, CASE WHEN n = 0 THEN 'failed' ELSE 'paid' END, user_sub, 'h', CASE WHEN n = 0 THEN 'why' END,
      created_at, $1::timestamptz - (60 + n) * interval '1 minute'
    FROM batch_jobs, generate_series(0, 499) n`,
    [NOW.toISOString()],
  )
  await recordAudit(
    db,
    NOW,
    ...Array.from({ length: ALL }, (_, n) => ({
      organisation: undefined,
      actor: { kind: 'ledger' as const, sub: `G${n}` },
      action: n % 1000 === 0 ? ('transfer.refused' as const) : ('transfer.sponsored' as const),
      subject: { kind: 'transfer' as const, id: String(n) },
      ...(n % 1000 === 0 && { detail: { reason: 'memo' } }),
    })),
  )
  await pool.query('ANALYZE')
}, 120_000)
afterAll(() => database.close())

const page = (limit: number): PageRequest => ({ limit, after: undefined })

/** Every page of a list, one after the other. */
async function readAll<Item>(list: (page: PageRequest) => Promise<Page<Item>>, limit: number): Promise<Item[]> {
  const found: Item[] = []
  let request = page(limit)
  for (;;) {
    const { items, next } = await list(request)
    found.push(...items)
    if (!next) return found
    request = { limit, after: next }
  }
}

describe('the traffic of a day', () => {
  test('has 24 hours, of which the last goes on', async () => {
    const { hours, medianSeconds, slowSeconds } = await readTraffic(db, NOW)
    expect(hours).toHaveLength(24)
    expect(hours[0]?.at).toEqual(new Date('2026-11-19T13:00:00Z'))
    expect(hours.at(-1)).toMatchObject({ at: new Date('2026-11-20T12:00:00Z'), succeeded: 3, failed: 1, open: 0 })
    expect(hours.at(-2)).toMatchObject({ succeeded: 6, failed: 0 })
    // From 13:00 yesterday until now: the transfers 0 to 141, of which two failed.
    expect(hours.reduce((sum, hour) => sum + hour.succeeded + hour.failed, 0)).toBe(142)
    expect(medianSeconds).toBe(2)
    expect(slowSeconds).toBe(4)
  })

  test('of which nothing is known is empty', async () => {
    const traffic = await readTraffic(db, new Date('2030-01-01T00:00:00Z'))
    expect(traffic).toMatchObject({ medianSeconds: undefined, slowSeconds: undefined })
    expect(traffic.hours.every(({ succeeded, medianSeconds }) => succeeded === 0 && medianSeconds === undefined)).toBe(
      true,
    )
  })
})

test('today’s spending: everybody, and the three that have used most', async () => {
  const { everybody, busiest, floatHeld } = await readSpending(db, 'S', NOW)
  expect(everybody).toMatchObject({ used: 7n, held: 5n, count: 100 })
  expect(busiest.map(({ account }) => account)).toEqual(['G99', 'G98', 'G97'])
  expect(floatHeld).toBe(0n)
})

describe('lists', () => {
  test.each<[string, (request: PageRequest) => Promise<Page<unknown>>, number]>([
    ['refusals', (request) => listRefusals(db, request), ALL / 1000],
    ['jobs, all of one moment', (request) => listJobs(db, request), 40],
    ['failed transfers', (request) => listTransfers(db, { view: 'failed', search: '' }, request), ALL / 100],
    ['transfers of an account', (request) => listTransfers(db, { view: 'all', search: 'G7' }, request), ALL / 50],
  ])('%s are complete, and nothing is in them twice', async (_, list, count) => {
    const all = await readAll(list, 7)
    expect(all).toHaveLength(count)
    expect(
      new Set(all.map((item) => JSON.stringify(item, (_, value) => (typeof value === 'bigint' ? `${value}` : value))))
        .size,
    ).toBe(count)
  })

  test('a hash finds its transfer, inner or outer, however it is written', async () => {
    const inner = `${'0'.repeat(62)}ff`
    const outer = `e${'0'.repeat(61)}ff`
    for (const search of [inner, outer, inner.toUpperCase(), outer.toUpperCase()]) {
      const { items } = await listTransfers(db, { view: 'all', search }, page(5))
      expect(items).toMatchObject([{ innerHash: inner, outerHash: outer }])
    }
    expect((await listTransfers(db, { view: 'all', search: "' or true --" }, page(5))).items).toEqual([])
  })

  test('troubles are the newest of all sorts, each with its reason', async () => {
    const troubles = await listTroubles(db, 4)
    expect(troubles.map(({ kind }) => kind)).toContain('refused')
    expect(troubles.find(({ kind }) => kind === 'refused')?.why).toBe('a memo is not allowed')
    expect((await listTroubles(db, 50)).find(({ kind }) => kind === 'failed')?.why).toMatch(/stale or wrong/)
  })
})

describe('no list reads a whole table', () => {
  const views = Object.keys(TRANSFER_VIEWS) as TransferView[]
  test.each<[string, () => Promise<unknown>]>([
    ...views.map((view): [string, () => Promise<unknown>] => [
      `transfers, ${view}`,
      () => listTransfers(db, { view, search: '' }, page(50)),
    ]),
    ['transfers of an account', () => listTransfers(db, { view: 'all', search: 'G7' }, page(50))],
    ['a transfer', () => listTransfers(db, { view: 'all', search: '0'.repeat(64) }, page(50))],
    ['traffic', () => readTraffic(db, NOW)],
    ['spending', () => readSpending(db, 'S', NOW)],
    ['troubles', () => listTroubles(db, 5)],
    ['refusals', () => listRefusals(db, page(50))],
    ['audit', () => listAudit(db, { action: undefined }, page(50))],
    ['audit of an action', () => listAudit(db, { action: 'transfer.refused' }, page(50))],
    ['batches', () => listAllBatches(db, { status: undefined }, page(50))],
    ['batches under way', () => listRunningBatches(db, 5)],
    ['contractors', () => listAllContractors(db, { status: undefined }, page(50))],
  ])('%s', async (_, read) => {
    const captured = await database.capture(read)
    expect(captured.length).toBeGreaterThan(0)
    for (const { query, params } of captured) {
      const { rows } = await pool.query(`EXPLAIN ${query}`, params)
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(plan).not.toMatch(/Seq Scan on (sponsored_transfers|quotas|audit_log|batches|contractors|batch_items)\b/)
    }
  })
})

test.each([
  [{ status: 'success', resultCode: 'txSuccess', contractError: null }, /^$/],
  [{ status: 'held', resultCode: null, contractError: null }, /^$/],
  [{ status: 'sent', resultCode: 'txBadSeq', contractError: null }, /sequence number.*\(txBadSeq\)$/],
  [{ status: 'failed', resultCode: 'txFailed', contractError: 3506 }, /stale or wrong.*\(contract error 3506\)$/],
  [{ status: 'failed', resultCode: 'txFailed', contractError: 9999 }, /^contract error 9999$/],
  [{ status: 'failed', resultCode: 'txNew', contractError: null }, /^txNew$/],
  [{ status: 'dead', resultCode: null, contractError: null }, /^it expired .* nothing was paid$/],
  [
    { status: 'dead', resultCode: 'txBadSeq', contractError: null },
    /nothing was paid; the network had refused it: the sequence/,
  ],
] as const)('%j is explained', (transfer, words) => {
  expect(explainTransfer(transfer)).toMatch(words)
})
