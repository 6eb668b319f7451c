import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readQuery } from '#app/(operator)/query.ts'
import { listAudit, readAudit } from '#lib/dashboard/audit.ts'
import { listBatches, readBatches } from '#lib/dashboard/batches.ts'
import { listContractors, readContractors } from '#lib/dashboard/contractors.ts'
import { explainTransfer } from '#lib/dashboard/explanation.ts'
import { listJobs, readJobs } from '#lib/dashboard/jobs.ts'
import { type List, type ListRequest, PAGE_SIZE } from '#lib/dashboard/list.ts'
import { listOrganisations, readOrganisations } from '#lib/dashboard/organisations.ts'
import { listPayouts, readPayouts } from '#lib/dashboard/payouts.ts'
import { listRefusals, type RefusalRequest, readRefusals } from '#lib/dashboard/refusals.ts'
import { listTransfers, readTransfers, type TransferRequest } from '#lib/dashboard/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'

/** The contractor that three refused transfers were to pay. */
const PAYEE = '00000000-0000-4000-8000-000000000077'
const NOW = new Date('2026-11-20T12:30:00Z')
const ALL = 10_000
const ACCOUNT = (n: number) =>
  `G${String(n)
    .padStart(4, 'A')
    .replace(/\d/g, (digit) => 'BCDEFGHIJK'[Number(digit)] ?? '')}${'A'.repeat(51)}`
const hashOf = (kind: string, n: number) => `${kind}${n.toString(16).padStart(63, '0')}`

let database: CapturedDatabase
let db: Database
let ids: { one: string; other: string; payroll: string }
const payroll = () => ids.payroll

beforeAll(async () => {
  database = await openCaptured()
  db = database.db
  const { pool } = database
  const { rows } = await pool.query(
    `INSERT INTO organisations (name, created_at) VALUES ('Northwind', now()), ('Contoso_100%', now() - interval '1 day') RETURNING id`,
  )
  ids = { one: rows[0].id, other: rows[1].id, payroll: '' }
  await pool.query(
    `INSERT INTO identities (kind, sub, issuer, email, organisation) VALUES
     ('idp', 'ada', 'i', 'ada@northwind.example', $1), ('idp', 'user 5', 'i', 'bob@example.com', $2)`,
    [ids.one, ids.other],
  )
  await pool.query(
    `INSERT INTO batches (organisation, name, status, created_at)
     SELECT CASE WHEN n % 4 = 0 THEN $2::uuid ELSE $1::uuid END, 'Payroll ' || n, CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'completed' END,
       $3::timestamptz - n * interval '1 minute' FROM generate_series(0, ${ALL - 1}) n`,
    [ids.one, ids.other, NOW],
  )
  ids.payroll = (await pool.query(`SELECT id FROM batches WHERE name = 'Payroll 1'`)).rows[0].id
  await pool.query(
    `INSERT INTO contractors (organisation, name, email, email_folded, address, status, invite_expires_at, created_at)
     SELECT $1, 'Contractor ' || n, 'c' || n || '@example.com', 'c' || n || '@example.com', 'GADDRESS' || n,
       CASE WHEN n % 10 = 0 THEN 'ready' ELSE 'invited' END, now(), $2::timestamptz - n / 3 * interval '1 minute'
     FROM generate_series(0, ${ALL - 1}) n`,
    [ids.one, NOW],
  )
  await pool.query(
    `INSERT INTO payouts (organisation, batch, contractor, encrypted_amount, status, error)
     SELECT $1, (SELECT id FROM batches WHERE name = 'Payroll 1'), id, 'x', CASE WHEN name LIKE '%7' THEN 'failed' ELSE 'ready' END, CASE WHEN name LIKE '%7' THEN '=1+1' END
     FROM contractors WHERE name LIKE 'Contractor 1%'`,
    [ids.one],
  )
  await pool.query(
    `INSERT INTO transfers (kind, account, owner, recipient, quota_account, sponsor, bid, sequence_number, quota_day, recorded_ledger,
       status, hash, organisation, payout, created_at, settled_at)
     SELECT 'transfer', $2, $2, CASE WHEN n % 100 = 0 THEN $3 WHEN n = 11 THEN 'GADDRESS77' ELSE 'G' END,
       CASE WHEN n = 15 THEN 'idp:payer' END, 'S', 200, n, 'd', 1, CASE WHEN n % 1000 = 3 THEN 'failed' WHEN n % 1000 = 4 THEN 'expired' ELSE 'succeeded' END,
       CASE WHEN n % 1000 <> 4 THEN CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END || lpad(to_hex(n), 63, '0') END, $1,
       CASE WHEN n = 9 THEN (SELECT p.id FROM payouts p JOIN contractors c ON c.id = p.contractor WHERE c.name = 'Contractor 12') END,
       $4::timestamptz - n * interval '1 minute', $4 FROM generate_series(0, ${ALL - 1}) n`,
    [ids.one, ACCOUNT(1), ACCOUNT(2), NOW],
  )
  await pool.query(
    `INSERT INTO envelopes (inner_hash, outer_hash, transfer, bid, max_time)
     SELECT 'a' || lpad(to_hex(sequence_number), 63, '0'), 'b' || lpad(to_hex(sequence_number), 63, '0'), id, 200, 0 FROM transfers`,
  )
  // The payouts of one contractor in two batches, each with a different address, hash and transfer.
  await pool.query(
    `INSERT INTO payouts (organisation, batch, contractor, encrypted_amount, status)
     SELECT b.organisation, b.id, c.id, 'x', 'ready' FROM batches b, contractors c WHERE b.name = 'Payroll 2' AND c.name = 'Contractor 13'`,
  )
  for (const n of [1, 2]) {
    await pool.query(
      `UPDATE payouts p SET address = $2, tx_hash = $3, transfer = t.id FROM batches b, contractors c, transfers t
       WHERE b.id = p.batch AND b.name = 'Payroll ' || $1::int AND c.id = p.contractor AND c.name = 'Contractor 13' AND t.sequence_number = $1`,
      [n, ACCOUNT(n + 10), hashOf('e', n + 10)],
    )
  }
  await pool.query(
    `INSERT INTO batch_jobs (id, user_kind, user_sub, relay_key, status, created_at, ended_at)
     SELECT gen_random_uuid(), 'idp', CASE WHEN n = 7 THEN 'ada' ELSE 'user ' || n END, 'key', 'failed', $1, $1 FROM generate_series(1, 45) n`,
    [NOW],
  )
  await pool.query(
    `INSERT INTO batch_items (job, position, status, quota_account, inner_hash, hash, recipient, channel, queued_at, settled_at)
     SELECT id, 0, CASE WHEN user_sub = 'user 5' THEN 'failed' ELSE 'paid' END, user_sub, CASE WHEN user_sub = 'ada' THEN $1 END, 'hash ' || right(user_sub, 2), 'GADDRESS' || right(user_sub, 2),
       'channel ' || right(user_sub, 2), created_at, created_at FROM batch_jobs`,
    [hashOf('a', 9)],
  )
  await recordAudit(
    db,
    NOW,
    ...Array.from({ length: 2_500 }, (_, n) => ({
      organisation: n % 2 === 0 ? ids.one : undefined,
      actor: { kind: 'ledger' as const, sub: `G${n % 100}` },
      action: n % 100 === 0 ? ('transfer.refused' as const) : ('transfer.sponsored' as const),
      subject: hashOf('d', n),
      ...(n % 100 === 0 && { detail: { reason: 'memo', ...(n < 300 && { contractor: PAYEE }) } }),
    })),
  )
  await pool.query('ANALYZE')
})
afterAll(() => database.close())

const ask = (request: Partial<ListRequest> = {}): ListRequest => ({
  q: '',
  status: '',
  organisation: '',
  page: 1,
  ...request,
})
const transfers = (request: Partial<TransferRequest> = {}) =>
  listTransfers(db, { q: '', organisation: '', contractor: '', view: '', page: 1, ...request })
const refused = (request: Partial<RefusalRequest> = {}): RefusalRequest => ({ ...ask(), contractor: '', ...request })
const AUDIT = { q: '', organisation: '', action: '', actor: '', from: '', to: '' }

/** Every page of a list, one after the other. */
async function readAll<Row>(list: (page: number) => Promise<List<Row>>): Promise<Row[]> {
  const first = await list(1)
  const rows = [...first.rows]
  for (let page = 2; page <= first.pages; page += 1) rows.push(...(await list(page)).rows)
  expect(rows).toHaveLength(first.total)
  return rows
}

describe('returns every record exactly once across the pages of a list', () => {
  test.each<[string, (page: number) => Promise<List<unknown>>, number]>([
    ['failed batches', (page) => listBatches(db, ask({ status: 'failed', page })), ALL / 100],
    [
      'ready contractors, three created at once',
      (page) => listContractors(db, ask({ status: 'ready', page })),
      ALL / 10,
    ],
    ['failed transfers, including expired ones', (page) => transfers({ view: 'failed', page }), ALL / 500],
    ['transfers to an account', (page) => transfers({ q: ACCOUNT(2), page }), ALL / 100],
    ['jobs created at once', (page) => listJobs(db, ask({ page })), 45],
    ['refusals', (page) => listRefusals(db, refused({ page })), 25],
    ['entries of an actor', (page) => listAudit(db, { ...AUDIT, actor: 'ledger:G7' }, page), 25],
  ])('%s', async (_, list, count) => {
    const rows = await readAll(list)
    expect(rows).toHaveLength(count)
    const texts = rows.map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
    expect(new Set(texts).size).toBe(count)
  })

  test('counts the tabs under the current search and filters', async () => {
    const { counts, total, pages, rows } = await listBatches(db, ask({ organisation: ids.other, status: 'failed' }))
    expect([counts.get(''), counts.get('failed'), counts.get('completed')]).toEqual([2_500, 100, 2_400])
    expect([total, pages, rows.length]).toEqual([100, 2, PAGE_SIZE])
    expect(rows.every(({ organisation }) => organisation === ids.other)).toBe(true)
  })

  test('shows the last page instead of one beyond the end', async () => {
    const { page, pages, rows } = await listContractors(db, ask({ page: 9_999 }))
    expect([page, pages, rows.length]).toEqual([200, 200, PAGE_SIZE])
  })
})

describe('a search finds', () => {
  test('a batch by its name or organisation, and takes the wildcards of SQL literally', async () => {
    expect((await listBatches(db, ask({ q: 'payroll 9999' }))).rows).toMatchObject([{ name: 'Payroll 9999' }])
    expect((await listBatches(db, ask({ q: 'o_100%' }))).total).toBe(2_500)
    expect((await listBatches(db, ask({ q: 'Payroll%9999' }))).total).toBe(0)
    expect((await listBatches(db, ask({ q: `\0' or true --` }))).total).toBe(0)
  })

  test('a batch by a payee: the name, or part of the email', async () => {
    for (const q of ['Contractor 12', 'c123@example']) {
      expect((await listBatches(db, ask({ q }))).rows).toMatchObject([{ name: 'Payroll 1' }])
    }
    expect((await listBatches(db, ask({ q: 'c2@example' }))).total).toBe(0)
  })

  test.each([1, 2])('a batch by part of its id, or of the address or the hash of a payout: Payroll %i', async (n) => {
    const name = `Payroll ${n}`
    const { rows } = await database.pool.query('SELECT id FROM batches WHERE name = $1', [name])
    for (const part of [rows[0].id.slice(3, 20), ACCOUNT(n + 10).slice(1, 30), hashOf('e', n + 10).slice(30)]) {
      for (const q of [part.toLowerCase(), part.toUpperCase()]) {
        expect((await listBatches(db, ask({ q }))).rows.map((batch) => batch.name)).toEqual([name])
      }
    }
  })

  test.each<[string, (q: string) => Promise<{ total: number }>, Record<string, number>]>([
    ['contractors', (q) => listContractors(db, ask({ q })), { 'TRACTOR 777': 11, northwi: ALL, contoso: 0 }],
    [
      'jobs',
      (q) => listJobs(db, ask({ q })),
      {
        'SER 31': 1,
        contoso: 1,
        'bob@exam': 1,
        [hashOf('A', 9).slice(30)]: 1,
        'Ash 20': 1,
        dress20: 1,
        'Nel 20': 1,
        'tractor 20': 1,
        'C20@exam': 1,
        'tractor 50': 0,
      },
    ],
    [
      'organisations',
      (q) => listOrganisations(db, { q, page: 1 }, NOW),
      { TOSO_1: 1, 'BOB@': 1, 'SER 5': 1, 'user 6': 0 },
    ],
    [
      'refusals',
      (q) => listRefusals(db, refused({ q })),
      { g0: 25, EMO: 25, [hashOf('D', 2_400).slice(30)]: 1, g1: 0 },
    ],
    ['audit', (q) => listAudit(db, { ...AUDIT, q }, 1), { g77: 25, 'FER.REF': 25, EMO: 25, contoso: 0 }],
    [
      'transfers',
      (q) => transfers({ q }),
      {
        [hashOf('A', 64).slice(0, -1)]: 16,
        [hashOf('B', 64).slice(0, -1)]: 16,
        [ACCOUNT(2).slice(1, 30)]: 100,
        'P:PAY': 1,
        'payroll 1': 1,
        'TRACTOR 12': 1,
        'C77@exam': 1,
        'payroll 2': 0,
      },
    ],
  ])('%s by part of each of their identifiers', async (_, list, expected) => {
    const results: [string, number][] = []
    for (const q of Object.keys(expected)) results.push([q, (await list(q)).total])
    expect(Object.fromEntries(results)).toEqual(expected)
  })

  test('an organisation by part of its id', async () => {
    expect((await listOrganisations(db, { q: ids.other.slice(3, 20), page: 1 }, NOW)).rows).toMatchObject([
      { id: ids.other },
    ])
  })

  test('a contractor by part of the email or of the address', async () => {
    expect((await listContractors(db, ask({ q: 'C77@EXAMPLE' }))).rows).toMatchObject([{ name: 'Contractor 77' }])
    expect((await listContractors(db, ask({ q: 'address9998' }))).rows).toMatchObject([{ name: 'Contractor 9998' }])
  })

  test('an organisation by the email of a user', async () => {
    expect((await listOrganisations(db, { q: 'ada@north', page: 1 }, NOW)).rows).toMatchObject([
      { name: 'Northwind', contractors: ALL, batches: 7_500, users: [{ sub: 'ada', email: 'ada@northwind.example' }] },
    ])
  })

  test('an organisation for which only the relay paid', async () => {
    const { rows } = await listOrganisations(db, { q: '', page: 1 }, NOW)
    expect(rows.map(({ name, lastPaidAt }) => [name, lastPaidAt])).toEqual([
      ['Northwind', NOW],
      ['Contoso_100%', null],
    ])
  })

  test.each([
    ['the client’s', 'a', 77],
    ['the sponsor’s', 'b', 77],
  ])('a transfer by %s hash, whole or in part, in any case', async (_, kind, n) => {
    const hash = hashOf(kind, n)
    for (const q of [hash, hash.toUpperCase()]) {
      const result = await transfers({ q })
      expect([result.total, result.rows]).toMatchObject([1, [{ innerHash: hashOf('a', n), status: 'succeeded' }]])
      expect((await transfers({ q, view: 'failed' })).total).toBe(0)
    }
    expect((await transfers({ q: hash.slice(30) })).rows.map(({ innerHash }) => innerHash)).toContain(hashOf('a', n))
  })

  test('trims the query of a page, and takes the first of a repeated parameter', async () => {
    expect(await readQuery(Promise.resolve({ q: [' c0ffee\n', 'x'], page: undefined }))).toEqual({
      q: 'c0ffee',
      page: '',
    })
  })

  test('a deposit of the faucet, which is otherwise not listed', async () => {
    const faucet = ACCOUNT(1)
    expect((await transfers({ faucet })).total).toBe(0)
    for (const q of [faucet, faucet.slice(0, 20), hashOf('a', 9), hashOf('a', 9).slice(30)]) {
      const total = (await transfers({ q })).total
      expect(total).toBeGreaterThan(0)
      expect((await transfers({ q, faucet })).total).toBe(total)
    }
    expect((await transfers({ faucet: ACCOUNT(2) })).total).toBe(ALL)
  })

  test('a transfer by its payee, with its batch and its job', async () => {
    const { rows } = await transfers({ q: 'contractor 12', view: 'succeeded' })
    expect(rows).toMatchObject([
      { innerHash: hashOf('a', 9), contractorName: 'Contractor 12', batchName: 'Payroll 1', job: expect.any(String) },
    ])
    const [line] = rows
    expect((await transfers({ contractor: line?.contractor ?? '' })).total).toBe(1)
    expect((await listJobs(db, ask({ q: line?.job ?? '' }))).rows).toMatchObject([{ organisationName: 'Northwind' }])
    expect((await transfers({ contractor: 'no id' })).total).toBe(0)
  })

  test('a transfer without a payout, such as one of the relay, by the contractor whose address it pays', async () => {
    const { rows } = await database.pool.query(`SELECT id FROM contractors WHERE address = 'GADDRESS77'`)
    const paid = { innerHash: hashOf('a', 11), contractor: rows[0].id, contractorName: 'Contractor 77', batch: null }
    for (const request of [{ contractor: rows[0].id }, { q: 'c77@example' }]) {
      expect(await transfers(request)).toMatchObject({ total: 1, rows: [paid] })
    }
    expect((await transfers({ contractor: rows[0].id, organisation: ids.other })).total).toBe(0)
  })

  test('no transfer without a payout by a deleted contractor with the same address', async () => {
    const { rows } = await database.pool.query(
      `INSERT INTO contractors (organisation, name, address, status, invite_expires_at, deleted_at)
       VALUES ($1, 'Former 77', 'GADDRESS77', 'ready', now(), now()) RETURNING id`,
      [ids.one],
    )
    expect((await transfers({ contractor: rows[0].id })).total).toBe(0)
    expect((await transfers({ q: 'former 77' })).total).toBe(0)
  })

  test('a job by its user, its hash or its organisation', async () => {
    expect((await listJobs(db, ask({ q: 'user 31' }))).total).toBe(1)
    expect((await listJobs(db, ask({ q: 'HASH 31' }))).total).toBe(1)
    expect((await listJobs(db, ask({ q: 'ada@north' }))).rows).toMatchObject([
      { userSub: 'ada', userEmail: 'ada@northwind.example' },
    ])
    expect((await listJobs(db, ask({ q: 'northwi' }))).rows).toMatchObject([{ userSub: 'ada' }])
    expect((await listJobs(db, ask({ organisation: ids.one }))).rows).toMatchObject([{ userSub: 'ada' }])
  })

  test('a payout of a batch by part of its address, its hash or an email, or by a hash of its transfer', async () => {
    const { rows } = await database.pool.query(`SELECT id FROM batches WHERE name = 'Payroll 1'`)
    const find = async (q: string) => (await listPayouts(db, { ...ask({ q }), batch: rows[0].id })).rows
    for (const q of [ACCOUNT(11).slice(1, 30), hashOf('e', 11).slice(30), hashOf('a', 1), hashOf('b', 1)]) {
      expect(await find(q)).toMatchObject([{ contractor: 'Contractor 13', address: ACCOUNT(11) }])
    }
    for (const q of [ACCOUNT(12), hashOf('e', 12), hashOf('a', 2)]) expect(await find(q)).toEqual([])
    expect(await find('C17@exam')).toMatchObject([{ contractor: 'Contractor 17' }])
  })

  test('payouts of a batch by the contractor, with counts by status', async () => {
    const [batch] = (await listBatches(db, ask({ q: 'Payroll 1' }))).rows.filter(({ name }) => name === 'Payroll 1')
    const result = await listPayouts(db, { ...ask({ q: 'Contractor 17' }), batch: batch?.id ?? '' })
    expect(result.counts.get('')).toBe(111)
    expect(result.counts.get('failed')).toBe(12)
  })
})

test('filters the audit log by organisation, actor, action, day and text', async () => {
  const total = async (filters: Partial<typeof AUDIT>) => (await listAudit(db, { ...AUDIT, ...filters }, 1)).total
  expect(await total({})).toBe(2_500)
  expect(await total({ organisation: ids.one })).toBe(1_250)
  expect(await total({ organisation: 'no id' })).toBe(0)
  expect(await total({ actor: 'ledger:G7' })).toBe(25)
  expect(await total({ actor: 'idp:G7' })).toBe(0)
  expect(await total({ action: 'transfer.refused' })).toBe(25)
  expect(await total({ from: '2026-11-20', to: '2026-11-20' })).toBe(2_500)
  expect(await total({ to: '2026-11-19' })).toBe(0)
  expect(await total({ from: '2026-11-21' })).toBe(0)
  expect(await total({ from: '2026-02-31' })).toBe(2_500)
  expect(await total({ from: '0001-01-01', to: '9999-12-31' })).toBe(2_500)
  expect(await total({ from: '9999-12-31' })).toBe(0)
  expect(await total({ from: '0000-01-01' })).toBe(2_500)
  expect(await total({ to: '0000-12-31' })).toBe(2_500)
  expect(await total({ q: hashOf('d', 77) })).toBe(1)
  expect(await total({ q: 'northwi' })).toBe(1_250)
})

test('lists the refusals of one contractor', async () => {
  expect((await listRefusals(db, refused({ contractor: PAYEE }))).total).toBe(3)
  expect((await listRefusals(db, refused({ contractor: PAYEE, q: 'g0' }))).total).toBe(3)
  expect((await listRefusals(db, refused({ contractor: ids.one }))).total).toBe(0)
  expect((await listRefusals(db, refused({ contractor: 'no id' }))).total).toBe(0)
})

describe('exports exactly the records that the pages of the list show, in their order', () => {
  const { page: _, ...all } = ask()
  const only = { ...all, contractor: '', view: '' as const }
  test.each<[string, (page: number) => Promise<List<unknown>>, () => AsyncIterable<unknown[]>]>([
    [
      'failed batches of an organisation',
      (page) => listBatches(db, ask({ page, organisation: ids.other, status: 'failed' })),
      () => readBatches(db, { ...all, organisation: ids.other, status: 'failed' }, 33),
    ],
    [
      'batches by a payee',
      (page) => listBatches(db, ask({ page, q: 'Contractor 13' })),
      () => readBatches(db, { ...all, q: 'Contractor 13' }, 1),
    ],
    [
      'contractors, three created at once',
      (page) => listContractors(db, ask({ page, q: 'tractor 77', status: 'invited' })),
      () => readContractors(db, { ...all, q: 'tractor 77', status: 'invited' }, 7),
    ],
    ['organisations', (page) => listOrganisations(db, { q: '', page }, NOW), () => readOrganisations(db, all, NOW, 1)],
    [
      'payouts of a batch',
      (page) => listPayouts(db, { ...ask({ page, q: 'Contractor 17', status: 'failed' }), batch: payroll() }),
      () => readPayouts(db, { ...all, q: 'Contractor 17', status: 'failed', batch: payroll() }, 5),
    ],
    [
      'payouts of no batch',
      (page) => listPayouts(db, { ...ask({ page }), batch: 'no id' }),
      () => readPayouts(db, { ...all, batch: 'no id' }),
    ],
    [
      'failed transfers',
      (page) => transfers({ page, view: 'failed' }),
      () => readTransfers(db, { ...only, view: 'failed' }, 3),
    ],
    [
      'transfers to an account',
      (page) => transfers({ page, q: ACCOUNT(2) }),
      () => readTransfers(db, { ...only, q: ACCOUNT(2) }, 30),
    ],
    [
      'transfers by text',
      (page) => transfers({ page, q: 'contractor 12' }),
      () => readTransfers(db, { ...only, q: 'contractor 12' }),
    ],
    [
      'jobs created at once',
      (page) => listJobs(db, ask({ page, q: 'ser 3' })),
      () => readJobs(db, { ...all, q: 'ser 3' }, 4),
    ],
    [
      'refusals of a contractor',
      (page) => listRefusals(db, refused({ page, contractor: PAYEE })),
      () => readRefusals(db, { ...only, contractor: PAYEE }, 2),
    ],
    [
      'audit entries of an actor',
      (page) => listAudit(db, { ...AUDIT, actor: 'ledger:G7' }, page),
      () => readAudit(db, { ...AUDIT, actor: 'ledger:G7' }, 10),
    ],
  ])('%s', async (name, list, parts) => {
    const pages = await readAll(list)
    const exported: unknown[] = []
    for await (const rows of parts()) exported.push(...rows)
    expect(exported).toEqual(pages)
    expect(pages.length > 0).toBe(name !== 'payouts of no batch')
  })
})

describe('reads the first page of a list from an index', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['transfers', () => transfers()],
    ['failed transfers', () => transfers({ view: 'failed' })],
    ['transfers of an account', () => transfers({ q: ACCOUNT(2) })],
    ['a transfer', () => transfers({ q: hashOf('b', 77) })],
    ['batches', () => listBatches(db, ask())],
    ['contractors', () => listContractors(db, ask())],
    ['refusals', () => listRefusals(db, refused())],
    ['audit', () => listAudit(db, AUDIT, 1)],
  ])('%s', async (_, read) => {
    const captured = await database.capture(read)
    const rows = captured.filter(({ query }) => /limit \$\d+/.test(query))
    expect(rows.length).toBeGreaterThan(0)
    for (const { query, params } of rows) {
      const { rows: lines } = await database.pool.query(`EXPLAIN ${query}`, params)
      const plan = lines.map((line) => line['QUERY PLAN']).join('\n')
      expect(plan).not.toMatch(/Seq Scan on (transfers|envelopes|audit_log|batches|contractors)\b/)
    }
  })
})

test.each([
  [{ status: 'succeeded', resultCode: 'txSuccess', contractError: null }, /^$/],
  [{ status: 'open', resultCode: null, contractError: null }, /^$/],
  [{ status: 'failed', resultCode: 'txBadSeq', contractError: null }, /sequence number.*\(txBadSeq\)$/],
  [
    { status: 'failed', resultCode: 'txFailed', contractError: 3506 },
    /the proof does not match.*\(contract error 3506\)$/,
  ],
  [{ status: 'failed', resultCode: 'txFailed', contractError: 9999 }, /^contract error 9999$/],
  [{ status: 'failed', resultCode: 'txNew', contractError: null }, /^txNew$/],
  [{ status: 'expired', resultCode: null, contractError: null }, /^it expired .* nothing was paid$/],
  [
    { status: 'expired', resultCode: null, contractError: null, refusalCode: 'txBadSeq' },
    /^the network refused it: the sequence number.*\(txBadSeq\); it expired .* nothing was paid$/,
  ],
  [
    { status: 'expired', resultCode: 'txBadSeq', contractError: null },
    /^another transaction of the account, unknown to this service, .*: check whether it paid$/,
  ],
  [{ status: 'unknown', resultCode: null, contractError: null }, /^the RPC no longer has the history/],
] as const)('explains %j', (transfer, words) => {
  expect(explainTransfer({ refusalCode: null, ...transfer })).toMatch(words)
})
