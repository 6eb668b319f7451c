import { randomUUID } from 'node:crypto'
import { inArray } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { transfers } from '#drizzle/schema/transfers.ts'
import { offlineContext } from '#lib/cli/seed/invites.ts'
import { batchRow, identityRow, insertRows, organisationRow } from '#lib/cli/seed/rows.ts'
import type { Database } from '#lib/db/connection.ts'
import { listBatches } from '#lib/directory/batches/batches.ts'
import { pollBatchStatus } from '#lib/directory/batches/status.ts'
import { listPayouts, type payoutsQuery } from '#lib/directory/payouts/payouts.ts'
import type { User } from '#lib/directory/users.ts'
import { findOpenTransfers } from '#lib/transfers/rows.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'
import { pair } from '../support/inner-transaction.ts'
import { limits, PLENTY, recordNamed, transferNamed } from '../transfers/quota-cases.ts'

/** Captures the queries of each verb and plans them again on large tables. */
let database: CapturedDatabase
let pool: CapturedDatabase['pool']
let db: Database
let organisation: string
let contractor: string
let few: string
let many: string

const MANY = 10_000
const ALL = 100_000

beforeAll(async () => {
  database = await openCaptured()
  ;({ db, pool } = database)
  const organisations = [organisationRow(), organisationRow()]
  await insertRows(db, { organisations })
  organisation = organisations[0]?.id ?? ''
  for (const { id } of organisations) await fill(id)
  await pool.query(`UPDATE batches SET payout_count = (SELECT count(*) FROM payouts WHERE batch = batches.id AND status <> 'canceled'),
    failed_count = (SELECT count(*) FROM payouts WHERE batch = batches.id AND status = 'failed')`)
  const sizes = await pool.query('SELECT batch FROM payouts WHERE organisation = $1 GROUP BY batch ORDER BY count(*)', [
    organisation,
  ])
  few = sizes.rows[0].batch
  many = sizes.rows.at(-1).batch
  await pool.query(`INSERT INTO batches (organisation, name) SELECT $1, 'b' FROM generate_series(1, 20000)`, [
    organisation,
  ])
  await pool.query('ANALYZE')
  contractor = (await pool.query('SELECT id FROM contractors WHERE organisation = $1 LIMIT 1', [organisation])).rows[0]
    .id
})
afterAll(() => database.close())

/** Half of all payouts for each of two organisations, in batches of `MANY`, and a small one. */
async function fill(id: string): Promise<void> {
  await pool.query(
    `INSERT INTO contractors (organisation, name, status, address, invite_expires_at)
      SELECT $1, 'payee', 'ready', 'G' || n, now() FROM generate_series(1, ${MANY}) n`,
    [id],
  )
  for (const [index, size] of [...Array(ALL / 2 / MANY).fill(MANY), 10].entries()) {
    const batch = batchRow({ organisation: id, status: 'ready', payoutCount: size })
    await insertRows(db, { batches: [batch] })
    await pool.query(
      `INSERT INTO payouts (organisation, batch, contractor, address, status, encrypted_amount, created_at)
        SELECT $1, $2, id, address, (ARRAY['ready', 'failed', 'canceled'])[1 + sequence % 3], 'sealed',
          now() - $3 * interval '1 hour' - sequence * interval '1 millisecond'
        FROM contractors WHERE organisation = $1 LIMIT $4`,
      [id, batch.id, index, size],
    )
  }
}

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** The executed plans of the queries that `work` sent to tables that grow. */
async function plansOf(work: () => Promise<unknown>): Promise<Plan[][]> {
  const queries = (await database.capture(work)).filter(({ query }) => query.startsWith('select'))
  const plans: Plan[][] = []
  for (const { query, params } of queries) {
    const { rows } = await pool.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${query}`, params)
    plans.push(nodesOf(rows[0]['QUERY PLAN'][0].Plan))
  }
  return plans
}

const context = () => offlineContext(db, new Date())
const employer = () => ({ organisation, actor: { kind: 'service', sub: 'plans' } as const })
const viewer = (user: Partial<User>): User => ({
  identity: { kind: 'ledger', sub: 'plans' },
  identities: [],
  organisationId: randomUUID(),
  organisation: undefined,
  records: [],
  isInvited: false,
  cameInvited: false,
  ...user,
})

test('runs one statement for a status poll, which reads one row of batches for a batch of any size', async () => {
  const identity = { kind: 'ledger', sub: pair('poller of the plans').publicKey() } as const
  await insertRows(db, { identities: [identityRow({ ...identity, organisation })] })
  const poll = async (id: string) => (await pollBatchStatus(context(), { identity, id })).progress
  for (const batch of [few, many]) {
    const [nodes = [], ...others] = await plansOf(() => poll(batch))
    expect(others).toEqual([])
    expect(nodes.filter((node) => node['Relation Name'] === 'batches')).toMatchObject([
      { 'Node Type': 'Index Scan', 'Actual Rows': 1 },
    ])
    expect(nodes.map((node) => node['Relation Name'])).not.toContain('payouts')
  }
  expect((await poll(few)).payoutCount).toBeLessThanOrEqual(10)
  expect((await poll(many)).payoutCount).toBeGreaterThan(MANY / 2)
})

const PAGE = { limit: 100 }
const LAST = { limit: 100, cursor: { createdAt: new Date(Date.now() - 3.9 * 3_600_000), sequence: 1 } }

describe('reads a page of payouts from an index, and reads no more rows than it shows', () => {
  const filters: [string, () => Omit<z.output<typeof payoutsQuery>, 'limit' | 'cursor'>][] = [
    ['all', () => ({})],
    ['by batch', () => ({ batchId: many })],
    ['by contractor', () => ({ contractorId: contractor })],
    ['by status', () => ({ status: 'failed' })],
    ['in a period', () => ({ from: new Date(Date.now() - 3 * 3_600_000), to: new Date() })],
  ]
  describe.each([
    ['first', PAGE],
    ['late', LAST],
  ])('the %s', (_, page) => {
    test.each(filters)('%s', async (_name, of) => {
      const [plan, ...more] = await plansOf(() =>
        listPayouts(
          { ...context(), user: viewer({ organisation: { id: organisation, name: 'one', notifyPayees: false } }) },
          { ...of(), ...page },
        ),
      )
      expect(more).toEqual([])
      expect(plan?.map((node) => node['Node Type'])).not.toContain('Seq Scan')
      expect(Math.max(...(plan ?? []).map((node) => node['Actual Rows']))).toBeLessThanOrEqual(page.limit + 1)
    })
  })

  test('for a contractor who is not an employer', async () => {
    const plans = await plansOf(() =>
      listPayouts(
        { ...context(), user: viewer({ records: [{ id: contractor, organisation, name: 'payee', status: 'ready' }] }) },
        PAGE,
      ),
    )
    expect(plans.flat().map((node) => node['Node Type'])).not.toContain('Seq Scan')
    expect(plans).toHaveLength(1)
  })
})

test('finds the open transfers of an organisation with an index', async () => {
  await pool.query(
    `INSERT INTO transfers (kind, account, recipient, sponsor, bid, sequence_number, quota_day, recorded_ledger,
        status, hash, settled_at, organisation)
      SELECT 'transfer', 'a', 'r', 's', 1, n, 'd', 1, 'succeeded', 'h' || n, now(), $1 FROM generate_series(1, 20000) n`,
    [organisation],
  )
  await pool.query('ANALYZE transfers')
  const [plan] = await plansOf(() =>
    findOpenTransfers(db, { condition: inArray(transfers.organisation, [organisation]) }),
  )
  expect(plan?.map((node) => node['Node Type'])).not.toContain('Seq Scan')
})

test('reads only the recipient’s payouts for a claim', async () => {
  const account = pair('wallet of the plans').publicKey()
  await insertRows(db, { identities: [identityRow({ sub: account, organisation })] })
  const plans = await plansOf(() => {
    const transfer = transferNamed('planned', { account, recipient: 'G1' })
    return recordNamed(db, transfer, limits, PLENTY)
  })
  const onPayouts = plans.flat().filter((node) => node['Relation Name'] === 'payouts')
  expect(onPayouts.length).toBeGreaterThan(0)
  expect(onPayouts.map((node) => node['Node Type'])).not.toContain('Seq Scan')
  expect(Math.max(...onPayouts.map((node) => node['Actual Rows']))).toBeLessThanOrEqual(6)
})

test('reads a page of batches from an index', async () => {
  const [plan] = await plansOf(() => listBatches({ ...context(), employer: employer() }, PAGE))
  expect(plan?.map((node) => node['Node Type'])).not.toContain('Seq Scan')
})
