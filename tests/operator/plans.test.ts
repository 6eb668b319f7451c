import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '#lib/db/connection.ts'
import type { Page, PageRequest } from '#lib/http/paging.ts'
import { listRefusals } from '#lib/operator/refusals.ts'
import { listTransfers, TRANSFER_VIEWS, type TransferView } from '#lib/operator/transfers.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'

/** What the pages of transfers and refusals read, on tables of the size that matters. */
const ALL = 100_000
const NOW = new Date('2026-11-20T12:30:00Z')
const hashOf = (kind: string, n: number) => `${kind}${n.toString(16).padStart(63, '0')}`

let database: CapturedDatabase
let pool: CapturedDatabase['pool']
let db: Database

beforeAll(async () => {
  database = await openCaptured()
  ;({ db, pool } = database)
  // One employer pays most; each 500th transfer is of a user's job; each 1000th failed; of a few, the ledger has a third hash.
  await pool.query(
    `INSERT INTO sponsored_transfers (inner_hash, outer_hash, account, recipient, quota_account, sponsor, envelope, bid,
       max_time, quota_day, since_ledger, status, ledger_hash, ledger, fee_charged, created_at, settled_at)
     SELECT 'a' || lpad(to_hex(n), 63, '0'), 'b' || lpad(to_hex(n), 63, '0'),
       CASE WHEN n % 10 = 3 THEN 'GOTHER' || n % 100 ELSE 'GEMPLOYER' END, 'GPAYEE' || n % 200,
       CASE WHEN n % 500 = 7 THEN 'GUSER' END, 'S', 'x', 200, 0, 'd', 1,
       CASE WHEN n % 1000 = 3 THEN 'failed' ELSE 'success' END,
       CASE WHEN n % 1000 = 5 THEN 'c' WHEN n % 2 = 0 THEN 'a' ELSE 'b' END || lpad(to_hex(n), 63, '0'), 1, 100,
       $1::timestamptz - n * interval '1 second', $1::timestamptz
     FROM generate_series(0, ${ALL} - 1) n`,
    [NOW],
  )
  await pool.query(
    `INSERT INTO audit_log (at, actor_kind, actor_sub, action, subject_kind, subject_id, detail)
     SELECT $1, 'ledger', CASE WHEN n % 1000 = 3 THEN 'GOTHER' || n % 100 ELSE 'GEMPLOYER' END,
       CASE WHEN n % 5 = 3 THEN 'transfer.refused' ELSE 'transfer.sponsored' END, 'transfer',
       'a' || lpad(to_hex(n), 63, '0'), '{"reason":"memo"}'
     FROM generate_series(0, ${ALL} - 1) n`,
    [NOW],
  )
  await pool.query('ANALYZE')
}, 120_000)
afterAll(() => database.close())

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}
const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** The plan, as it ran, of the one query that `work` makes. */
async function planOf(work: () => Promise<unknown>): Promise<Plan[]> {
  const captured = await database.capture(work)
  expect(captured).toHaveLength(1)
  const [{ query, params } = { query: '', params: [] }] = captured
  const { rows } = await pool.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${query}`, params)
  return nodesOf(rows[0]['QUERY PLAN'][0].Plan)
}

/** The tables that grow which the plan reads as a whole; nothing is in the others here. */
const readWhole = (plan: Plan[]) =>
  plan
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => node['Relation Name'])
    .filter((name) => name === 'sponsored_transfers' || name === 'audit_log')

/** The most rows that a part of the plan read, shown or not. */
const mostRead = (plan: Plan[]) =>
  Math.max(...plan.map((node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']))

const PAGE: PageRequest = { limit: 50, after: undefined }
const LATE: PageRequest = { limit: 50, after: { createdAt: new Date(NOW.getTime() - 70_000_000), sequence: 1 } }

/** Every page of a list, one after the other. */
async function readAll<Item>(list: (page: PageRequest) => Promise<Page<Item>>, limit: number): Promise<Item[]> {
  const found: Item[] = []
  let request: PageRequest = { limit, after: undefined }
  for (;;) {
    const { items, next } = await list(request)
    found.push(...items)
    if (!next) return found
    request = { limit, after: next }
  }
}

const find = (search: string, view: TransferView = 'all') => listTransfers(db, { view, search }, PAGE)

describe('a page of transfers follows an index, and reads little more than it shows', () => {
  const asked: [string, TransferView, string][] = [
    ...(Object.keys(TRANSFER_VIEWS) as TransferView[]).map((view): [string, TransferView, string] => [view, view, '']),
    ['of who pays most', 'all', 'GEMPLOYER'],
    ['of who pays most, settled', 'settled', 'GEMPLOYER'],
    ['of who pays most, failed', 'failed', 'GEMPLOYER'],
    ['of who pays little', 'all', 'GOTHER33'],
    ['of who is paid', 'all', 'GPAYEE7'],
    ['of whose quota it is', 'all', 'GUSER'],
    ['of nobody', 'all', 'GNOBODY'],
    ['of a client’s hash', 'all', hashOf('a', 77)],
    ['of the sponsor’s hash', 'all', hashOf('b', 77)],
    ['of the ledger’s hash', 'all', hashOf('c', 1005)],
    ['of no hash', 'all', hashOf('d', 1)],
  ]
  describe.each([
    ['first', PAGE],
    ['late', LATE],
  ])('the %s', (_, page) => {
    test.each(asked)('%s', async (_name, view, search) => {
      const plan = await planOf(() => listTransfers(db, { view, search }, page))
      expect(readWhole(plan)).toEqual([])
      // Three parts of an account's, a page and one row of each; they are joined to what they pay.
      expect(mostRead(plan)).toBeLessThanOrEqual(4 * (page.limit + 1))
    })
  })
})

describe('a page of refusals does, too', () => {
  test.each([
    ['all', ''],
    ['of who is refused most', 'GEMPLOYER'],
    ['of who is refused at times', 'GOTHER3'],
    ['of nobody', 'GNOBODY'],
    ['of a hash', hashOf('a', 8)],
    ['of a hash that was sponsored', hashOf('a', 9)],
  ])('%s', async (_, search) => {
    for (const page of [PAGE, { limit: 50, after: { createdAt: NOW, sequence: ALL / 2 } }]) {
      const plan = await planOf(() => listRefusals(db, page, { search }))
      expect(readWhole(plan)).toEqual([])
      // By its own index, or where every fifth entry is a refusal by that of all.
      expect(mostRead(plan)).toBeLessThanOrEqual(ALL / 100)
    }
  })
})

describe('a search', () => {
  test.each([
    ['the client’s', 'a', 77],
    ['the sponsor’s', 'b', 77],
    ['the ledger’s', 'c', 1005],
  ])('finds a transfer by %s hash, however it is written', async (_, kind, n) => {
    for (const search of [hashOf(kind, n), hashOf(kind, n).toUpperCase(), ` ${hashOf(kind, n)}\n`]) {
      expect((await find(search)).items).toMatchObject([{ innerHash: hashOf('a', n) }])
      expect((await find(search, 'failed')).items).toEqual([])
    }
  })

  test.each([
    ['pays', 'GOTHER33', 'account', ALL / 100],
    ['is paid', 'GPAYEE7', 'recipient', ALL / 200],
    ['has the quota', 'GUSER', 'quotaAccount', ALL / 500],
  ] as const)('finds all transfers of who %s, once and in order', async (_, search, part, count) => {
    const all = await readAll((page) => listTransfers(db, { view: 'all', search }, page), 33)
    expect(all).toHaveLength(count)
    expect(new Set(all.map(({ innerHash }) => innerHash)).size).toBe(count)
    expect(all.every((line) => line[part] === search)).toBe(true)
    const times = all.map(({ createdAt }) => createdAt.getTime())
    expect(times).toEqual(times.toSorted((one, other) => other - one))
  })

  test('finds what an account pays and what it is paid, together', async () => {
    await pool.query(`UPDATE sponsored_transfers SET recipient = 'GUSER' WHERE inner_hash = ANY ($1)`, [
      [hashOf('a', 1), hashOf('a', 7), hashOf('a', 600)],
    ])
    const hashes = (await find('GUSER')).items.map(({ innerHash }) => innerHash)
    expect(hashes.slice(0, 4)).toEqual([1, 7, 507, 600].map((n) => hashOf('a', n)))
  })

  test('finds refusals by the account and by the hash of what it signed', async () => {
    const of = (search: string) => readAll((page) => listRefusals(db, page, { search }), 33)
    const refused = await of('GOTHER3')
    expect(refused).toHaveLength(ALL / 1000)
    expect(refused.every(({ account }) => account === 'GOTHER3')).toBe(true)
    const hash = hashOf('a', 8)
    expect(await of(hash.toUpperCase())).toMatchObject([{ innerHash: hash, words: 'a memo is not allowed' }])
    expect(await of(hashOf('a', 9))).toEqual([])
  })

  test.each(["' or true --", 'G\0', '%', 'a b', ' '])('finds nothing by %j', async (search) => {
    expect((await find(search)).items).toEqual([])
    expect((await listRefusals(db, PAGE, { search })).items).toEqual([])
  })
})
