import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readQuery } from '#app/(operator)/query.ts'
import { batches as batchRows } from '#drizzle/schema/directory.ts'
import {
  batchRow,
  contractorRow,
  envelopeRow,
  identityRow,
  insertRows,
  itemRow,
  jobRow,
  organisationRow,
  payoutRow,
  transferRow,
} from '#lib/cli/seed/rows.ts'
import { AUDIT } from '#lib/dashboard/audit.ts'
import { BATCHES } from '#lib/dashboard/batches.ts'
import { CONTRACTORS } from '#lib/dashboard/contractors.ts'
import { causeOfTransfer } from '#lib/dashboard/explanation.ts'
import { type FilterChecks, readFilters } from '#lib/dashboard/filters.ts'
import { JOBS } from '#lib/dashboard/jobs.ts'
import { type List, PAGE_SIZE, type RecordList, readList, readWholeList } from '#lib/dashboard/list.ts'
import { ORGANISATIONS } from '#lib/dashboard/organisations.ts'
import { PAYOUTS } from '#lib/dashboard/payouts.ts'
import { REFUSALS, TRANSFERS } from '#lib/dashboard/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { MAX_COUNTED } from '#lib/db/count.ts'
import { writeCursor } from '#lib/db/keyset.ts'
import { placeOf } from '#lib/db/paging.ts'
import { withLogFields } from '#lib/observability/log.ts'
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
/** of the organisations, of a batch, and of contractors: 12, 13, 77, and a removed one with the address of 77 */
let ids: Record<'one' | 'other' | 'payroll' | 'twelve' | 'thirteen' | 'seventySeven' | 'former', string>

const NUMBERS = [...Array(ALL).keys()]
const minutesAgo = (n: number) => new Date(NOW.getTime() - n * 60_000)

beforeAll(async () => {
  database = await openCaptured()
  db = database.db
  const one = organisationRow({ name: 'Northwind', createdAt: NOW })
  const other = organisationRow({ name: 'Contoso_100%', createdAt: minutesAgo(1_440) })
  const ofOne = { organisation: one.id }
  const identities = [
    identityRow({ kind: 'idp', sub: 'ada', email: 'ada@northwind.example', organisation: one.id }),
    identityRow({ kind: 'idp', sub: 'user 5', email: 'bob@example.com', organisation: other.id }),
  ]
  const batches = NUMBERS.map((n) => {
    const state = { status: n % 100 === 0 ? 'failed' : 'completed', createdAt: minutesAgo(n) } as const
    return batchRow({ organisation: n % 4 === 0 ? other.id : one.id, name: `Payroll ${n}`, ...state })
  })
  const contractors = NUMBERS.map((n) => {
    const person = { name: `Contractor ${n}`, email: `c${n}@example.com`, address: `GADDRESS${n}` }
    const state = { status: n % 10 === 0 ? 'ready' : 'invited', createdAt: minutesAgo(Math.floor(n / 3)) } as const
    return contractorRow({ ...ofOne, ...person, ...state })
  })
  const idOf = (rows: { id: string }[], n: number) => rows[n]?.id ?? ''
  const payroll = idOf(batches, 1)
  const transfers = NUMBERS.map((n) => {
    const status = n % 1000 === 3 ? 'failed' : n % 1000 === 4 ? 'expired' : 'succeeded'
    return transferRow({
      ...ofOne,
      account: ACCOUNT(1),
      recipient: n % 100 === 0 ? ACCOUNT(2) : n === 11 ? 'GADDRESS77' : 'G',
      quotaAccount: n === 15 ? 'idp:payer' : null,
      sponsor: 'S',
      sequenceNumber: BigInt(n),
      status,
      resultCode: status === 'expired' ? 'txBadSeq' : null,
      contractError: status === 'failed' ? 3506 : null,
      feeCharged: status === 'expired' ? null : BigInt((n * 7919) % 500),
      hash: status === 'expired' ? null : hashOf(n % 2 === 0 ? 'a' : 'b', n),
      createdAt: minutesAgo(n),
      settledAt: NOW,
    })
  })
  const envelopes = transfers.map(({ id }, n) =>
    envelopeRow({ transfer: id, innerHash: hashOf('a', n), outerHash: hashOf('b', n) }),
  )
  // Contractor 13 has payouts in two batches, each with a different address, hash and transfer.
  const payoutOf = (n: number, batch = payroll) => {
    const isFailed = n % 10 === 7
    const at = batch === payroll ? 1 : 2
    return payoutRow({
      ...ofOne,
      batch,
      contractor: idOf(contractors, n),
      status: isFailed ? 'failed' : n === 12 ? 'paid' : 'ready',
      error: isFailed ? 'allowance-short' : null,
      ...(n === 13 && { address: ACCOUNT(at + 10), txHash: hashOf('e', at + 10), transfer: idOf(transfers, at) }),
      ...(n === 17 && { transfer: idOf(transfers, 3) }),
    })
  }
  const payouts = [
    ...NUMBERS.filter((n) => `${n}`.startsWith('1')).map((n) => payoutOf(n)),
    payoutOf(13, idOf(batches, 2)),
  ]
  // The list of a batch takes its counts from the batch's row.
  const ofPayroll = payouts.filter(({ batch }) => batch === payroll)
  const failedCount = ofPayroll.filter(({ status }) => status === 'failed').length
  Object.assign(batches[1] ?? {}, { payoutCount: ofPayroll.length, settledCount: 1, failedCount, failedAt: NOW })
  const payout = payouts.find(({ contractor }) => contractor === idOf(contractors, 12))?.id ?? ''
  const users = Array.from({ length: 120 }, (_, n) => (n === 6 ? 'ada' : `user ${n + 1}`))
  const jobs = users.map((userSub) => jobRow({ userSub, status: 'failed', createdAt: NOW }))
  const lineJob = jobs.find(({ userSub }) => userSub === 'ada')?.id
  const paying = transfers.map((row, n) => (n === 9 ? { ...row, payout, lineJob, linePosition: 0 } : row))
  const items = jobs.map(({ id: job, userSub }) => {
    const end = userSub.slice(-2)
    return itemRow({
      job,
      outcome: userSub === 'user 5' ? 'failed' : 'paid',
      quotaAccount: userSub,
      hash: `hash ${end}`,
      recipient: `GADDRESS${end}`,
      channel: `channel ${end}`,
      queuedAt: NOW,
    })
  })
  const former = contractorRow({ ...ofOne, name: 'Former 77', address: 'GADDRESS77', deletedAt: NOW })
  const employers = { organisations: [one, other], identities, batches, contractors: [...contractors, former] }
  await insertRows(db, { ...employers, payouts, jobs, items, transfers: paying, envelopes })
  const entries = Array.from({ length: 2_500 }, (_, n) => ({
    organisation: n % 2 === 0 ? one.id : undefined,
    actor: { kind: 'ledger' as const, sub: `G${n % 100}` },
    action: n % 100 === 0 ? ('transfer.refused' as const) : ('transfer.sponsored' as const),
    subject: hashOf('d', n),
    ...(n % 100 === 0 && { detail: { reason: 'memo', ...(n < 300 && { contractor: PAYEE }) } }),
  }))
  const yesterday = new Date(NOW.getTime() - 86_400_000)
  await withLogFields({ requestId: 'payroll-7' }, () => recordAudit(db, yesterday, ...entries.slice(0, 500)))
  await recordAudit(db, NOW, ...entries.slice(500))
  ids = {
    one: one.id,
    other: other.id,
    payroll,
    twelve: idOf(contractors, 12),
    thirteen: idOf(contractors, 13),
    seventySeven: idOf(contractors, 77),
    former: former.id,
  }
  await database.pool.query('ANALYZE')
})
afterAll(() => database.close())

const filtersOf = <Checks extends FilterChecks>(checks: Checks, query: Record<string, string> = {}) => {
  const { filters, unknown } = readFilters(checks, query)
  expect(unknown).toEqual([])
  return filters
}
type Given = Record<string, string>

/** The page and the file of a list for a query. */
const openList = <Checks extends FilterChecks, Row>(list: RecordList<Checks, Row>) => ({
  page: ({ faucet, ...query }: Given = {}) =>
    readList(list, { db, now: NOW, faucet }, filtersOf(list.filters, query), query),
  file: (query: Given, size: number) => readWholeList(list, { db, now: NOW }, filtersOf(list.filters, query), size),
})
const batches = openList(BATCHES)
const contractors = openList(CONTRACTORS)
const transfers = openList(TRANSFERS)
const jobs = openList(JOBS)
const payouts = openList(PAYOUTS)
const audit = openList(AUDIT)
const organisations = openList(ORGANISATIONS)
const refusals = openList(REFUSALS)
interface Opened {
  page: (query: Given) => Promise<List<unknown>>
  file: (query: Given, size: number) => Promise<AsyncIterable<unknown[]>>
}
const LISTS: Record<string, Opened> = {
  batches,
  contractors,
  transfers,
  jobs,
  payouts,
  audit,
  organisations,
  refusals,
}

/** Every page of a list, forwards, after reading them all backwards from the last one. */
async function readBothWays<Row>(list: (query: Given) => Promise<List<Row>>, query: Given): Promise<Row[]> {
  let page = await list(query)
  const rows = [...page.rows]
  while (page.next !== undefined) {
    page = await list({ ...query, after: page.next })
    rows.push(...page.rows)
  }
  const backwards = [...page.rows]
  while (page.previous !== undefined) {
    page = await list({ ...query, before: page.previous })
    // The first page is full again: it may repeat rows of the second.
    if (page.previous === undefined) break
    backwards.unshift(...page.rows)
  }
  expect(backwards).toEqual(rows.slice(-backwards.length))
  expect(rows.length - backwards.length).toBeLessThanOrEqual(PAGE_SIZE)
  expect(page.rows).toEqual(rows.slice(0, PAGE_SIZE))
  return rows
}

const ONE_DAY = { from: '2026-11-19', to: '2026-11-19' }

describe('lists and exports exactly the records that match, each once, in both directions', () => {
  test.each<[list: string, filters: () => Given, count: number]>([
    ['batches', () => ({ status: 'failed' }), 100],
    ['batches', () => ({ status: 'failed', organisation: ids.other, sort: 'oldest' }), 100],
    ['batches', () => ({ contractor: ids.thirteen }), 2],
    ['batches', () => ONE_DAY, 1_440],
    ['contractors', () => ({ status: 'ready' }), 1_000],
    ['contractors', () => ({ status: 'ready', organisation: ids.one, sort: 'oldest' }), 1_000],
    ['contractors', () => ({ organisation: ids.other }), 0],
    ['transfers', () => ({ view: 'failed' }), 20],
    ['transfers', () => ({ view: 'failed', reason: '3506' }), 10],
    ['transfers', () => ({ reason: 'txBadSeq' }), 10],
    ['transfers', () => ({ account: ACCOUNT(2) }), 100],
    ['transfers', () => ({ account: 'idp:payer' }), 1],
    ['transfers', () => ({ contractor: ids.twelve }), 1],
    ['transfers', () => ({ contractor: ids.seventySeven }), 1],
    ['transfers', () => ({ contractor: ids.former }), 0],
    ['transfers', () => ({ contractor: ids.seventySeven, organisation: ids.other }), 0],
    ['transfers', () => ({ batch: ids.payroll }), 1],
    ['transfers', () => ({ organisation: ids.one, view: 'failed' }), 20],
    ['transfers', () => ({ ...ONE_DAY, organisation: ids.one, sort: 'oldest' }), 1_440],
    ['transfers', () => ({ from: '2026-11-20T11:00:00.000Z', to: '2026-11-20T12:00:00.000Z' }), 60],
    ['jobs', () => ({}), 120],
    ['jobs', () => ({ organisation: ids.one }), 1],
    ['jobs', () => ({ status: 'running' }), 0],
    ['organisations', () => ({}), 2],
    ['organisations', () => ({ from: '2000-01-01', to: '2000-01-02' }), 0],
    ['payouts', () => ({ batch: ids.payroll, status: 'failed' }), 111],
    ['payouts', () => ({ batch: ids.payroll, contractor: ids.thirteen }), 1],
    ['payouts', () => ({ batch: ids.payroll, reason: 'allowance-short' }), 111],
    ['payouts', () => ({ organisation: ids.one, reason: '3506' }), 1],
    ['payouts', () => ({ organisation: ids.one }), 1_112],
    ['payouts', () => ({}), 1_112],
    ['refusals', () => ({ view: 'refused' }), 25],
    ['refusals', () => ({ view: 'refused', contractor: PAYEE }), 3],
    ['refusals', () => ({ view: 'refused', account: 'G0', reason: 'memo', organisation: ids.one }), 25],
    ['refusals', () => ({ view: 'refused', account: 'G1' }), 0],
    // The log doesn't name the batch, and no refusal has the reason of a transfer that was sent.
    ['refusals', () => ({ view: 'refused', batch: ids.payroll }), 0],
    ['refusals', () => ({ view: 'refused', reason: '3506' }), 0],
    ['audit', () => ({}), 2_500],
    ['audit', () => ({ organisation: ids.one, sort: 'oldest' }), 1_250],
    ['audit', () => ({ actor: 'ledger:G7' }), 25],
    ['audit', () => ({ actor: 'idp:G7' }), 0],
    ['audit', () => ({ action: 'transfer.refused' }), 25],
    ['audit', () => ({ record: hashOf('d', 77) }), 1],
    ['audit', () => ({ request: 'payroll-7' }), 500],
    ['audit', () => ({ from: '2026-11-20', to: '2026-11-20' }), 2_000],
    ['audit', () => ({ to: '2026-11-18' }), 0],
    ['audit', () => ({ from: '2026-11-19', to: '2026-11-19', actor: 'ledger:G7' }), 5],
    ['audit', () => ({ from: '0001-01-01', to: '9999-12-31' }), 2_500],
    ['audit', () => ({ from: '9999-12-31' }), 0],
  ])('%s %#', async (name, filters, count) => {
    const list = LISTS[name]
    if (!list) throw new Error('no such list')
    const rows = await readBothWays(list.page, filters())
    expect(rows).toHaveLength(count)
    expect((await list.page(filters())).total).toBe(count)
    const exported: unknown[] = []
    for await (const part of await list.file(filters(), 37)) exported.push(...part)
    // A file lists the newest first, even if the page lists the oldest first.
    expect(exported).toEqual('sort' in filters() ? rows.toReversed() : rows)
  })

  test('counts the tabs under the current filters', async () => {
    const { counts, total, rows } = await batches.page({ organisation: ids.other, status: 'failed' })
    expect([counts.get(''), counts.get('failed'), counts.get('completed')]).toEqual([2_500, 100, 2_400])
    expect([total, rows.length]).toEqual([100, PAGE_SIZE])
    expect((await payouts.page({ batch: ids.payroll })).counts.get('failed')).toBe(111)
  })

  test('counts no further than 10,000', async () => {
    expect((await transfers.page()).counts.get('')).toBe(MAX_COUNTED)
    await db
      .transaction(async (tx) => {
        await tx.execute(`INSERT INTO organisations (name) SELECT 'More' FROM generate_series(1, 10050)`)
        const filters = filtersOf(ORGANISATIONS.filters)
        expect((await readList(ORGANISATIONS, { db: tx, now: NOW }, filters, {})).total).toBe(MAX_COUNTED + 1)
        throw new RangeError('undone')
      })
      .catch((error) => expect(error).toBeInstanceOf(RangeError))
  })

  test('shows the first page for a cursor before which there are fewer rows', async () => {
    const second = (await contractors.page()).next ?? ''
    const { rows, previous } = await contractors.page({ after: second })
    expect(previous).toBeDefined()
    const first = await contractors.page({ before: writeCursor(placeOf(rows[3] ?? { createdAt: NOW, sequence: 0 })) })
    expect(first.rows).toHaveLength(PAGE_SIZE)
    expect(first.next).toBeDefined()
  })

  test('sorts the newest transfers by fee, and pages through them', async () => {
    const rows = await readBothWays(transfers.page, { sort: 'fee', view: 'succeeded', from: '2026-11-20' })
    const fees = rows.map(({ feeCharged }) => Number(feeCharged))
    expect(fees).toHaveLength(749)
    expect(fees).toEqual(fees.toSorted((one, other) => other - one))
  })

  test('lists a deposit of the faucet only if the faucet’s account is the filter', async () => {
    const faucet = ACCOUNT(1)
    expect((await transfers.page({ faucet })).total).toBe(0)
    expect((await transfers.page({ faucet, account: faucet })).total).toBe(ALL)
    expect((await transfers.page({ faucet: ACCOUNT(2) })).total).toBe(ALL)
  })

  test('shows a transfer with its payee, batch and job', async () => {
    expect((await transfers.page({ contractor: ids.twelve })).rows).toMatchObject([
      { innerHash: hashOf('a', 9), contractorName: 'Contractor 12', batchName: 'Payroll 1', job: expect.any(String) },
    ])
    // Without a payout, such as one of the relay: the contractor whose address it pays.
    expect((await transfers.page({ contractor: ids.seventySeven })).rows).toMatchObject([
      { innerHash: hashOf('a', 11), contractorName: 'Contractor 77', batch: null },
    ])
    expect((await jobs.page({ organisation: ids.one })).rows).toMatchObject([
      { userSub: 'ada', userEmail: 'ada@northwind.example', items: { all: 1, paid: 1, failed: 0 } },
    ])
  })

  test('finds the same transfers of a batch that has more payouts than are read', async () => {
    const small = await transfers.page({ batch: ids.payroll })
    expect(small.rows).toHaveLength(1)
    const isPayroll = eq(batchRows.id, ids.payroll)
    const settledCount = small.counts.get('succeeded') ?? 0
    const large = { payoutCount: 1_001, settledCount, failedCount: 0, createdAt: NOW, progressedAt: NOW }
    await db.update(batchRows).set(large).where(isPayroll)
    expect(await transfers.page({ batch: ids.payroll })).toEqual(small)
    expect(await transfers.page({ batch: ids.payroll, organisation: ids.other })).toMatchObject({ total: 0, rows: [] })
  })

  test('shows an organisation for which only the relay paid', async () => {
    const { rows } = await organisations.page()
    expect(rows.map(({ name, lastPaidAt, batches: count }) => [name, lastPaidAt, count])).toEqual([
      ['Northwind', NOW, 7_500],
      ['Contoso_100%', null, 2_500],
    ])
  })
})

test.each<Given>([{ status: 'canceled' }, { reason: '3506' }, { from: '2026-11-20' }, { to: '2026-11-20' }])(
  'refuses a file of all payouts with the filter %j, which would read all of them',
  async (query) => {
    await expect(payouts.file(query, 1)).rejects.toThrow(
      expect.objectContaining({ code: 'filter-unknown', message: expect.stringContaining(Object.keys(query).join()) }),
    )
  },
)

/** The steps of the plans of the queries that `work` sends, as PostgreSQL describes them. */
async function plansOf(work: () => Promise<unknown>): Promise<string> {
  const queries = await database.capture(work)
  const plans = queries.map(({ query, params }) => database.pool.query(`EXPLAIN (COSTS OFF) ${query}`, params))
  return (await Promise.all(plans)).flatMap(({ rows }) => rows.map((row) => row['QUERY PLAN'])).join('\n')
}

test('finds the few entries of the sponsor by the index of actors', async () => {
  const plans = await plansOf(() => audit.page({ actor: 'service:sponsor' }))
  expect(plans).toContain('audit_log_actor')
  expect(plans).not.toContain('audit_log_pkey')
})

test('reads no entries for an action that the actor never takes', async () => {
  const plans = await plansOf(() => audit.page({ actor: 'service:settlement', action: 'transfer.sponsored' }))
  expect(plans).toContain('One-Time Filter: false')
  expect(plans).not.toContain('Scan')
})

test('reports filters that a list does not have, and ignores them', () => {
  const id = '00000000-0000-4000-8000-000000000077'
  const query = {
    status: 'gone',
    organisation: id,
    contractor: 'x',
    q: 'ada',
    from: '2026-02-31',
    after: 'x',
    sort: '',
  }
  const { filters, unknown } = readFilters(BATCHES.filters, query)
  expect(filters).toEqual({ status: '', organisation: id, contractor: '', from: '', to: '', sort: '' })
  expect(unknown.map(({ name, value }) => `${name}=${value}`)).toEqual([
    'status=gone',
    'contractor=x',
    'q=ada',
    'from=2026-02-31',
    'after=x',
  ])
  for (const day of ['0000-01-01', '2026-1-1', '2026-11-20T25:00:00.000Z', '2026-11-20T12:00:00Z']) {
    expect(readFilters(BATCHES.filters, { to: day }).unknown).toHaveLength(1)
  }
})

test('trims the query of a page, and takes the first of a repeated parameter', async () => {
  expect(await readQuery(Promise.resolve({ q: [' c0ffee\n', 'x'], page: undefined }))).toEqual({
    q: 'c0ffee',
    page: '',
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
  expect(causeOfTransfer({ refusalCode: null, ...transfer }).meaning).toMatch(words)
})
