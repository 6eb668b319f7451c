import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '#lib/db/connection.ts'
import { deliverDue } from '#lib/events/delivery.ts'
import { keyIdOf } from '#lib/events/signature.ts'
import type { Webhooks } from '#lib/events/webhooks.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'

/** Deliveries that wait for one endpoint. */
const MANY = 20_000
const SECRET = new Uint8Array(32)

let database: CapturedDatabase
beforeAll(async () => {
  database = await openCaptured()
})
afterAll(() => database.close())

/** An endpoint with due deliveries, the first of which are leased. It refuses connections. */
async function addEndpoint(due: number, leased: number): Promise<string> {
  const [organisation, id] = [randomUUID(), randomUUID()]
  const { pool } = database
  await pool.query(`INSERT INTO organisations (id, name) VALUES ($1, 'one')`, [organisation])
  await pool.query(
    `INSERT INTO webhooks (id, organisation, url, key_id, cursor) VALUES ($1, $2, 'https://1.1.1.1:1/', $3, 0)`,
    [id, organisation, keyIdOf(SECRET)],
  )
  await pool.query(
    `INSERT INTO webhook_deliveries (webhook, event, event_id, type, due, leased_until)
      SELECT $1, n, n, 'payout.paid', now() - interval '1 hour', CASE WHEN n <= $3 THEN now() + interval '1 hour' END
      FROM generate_series(1, $2::int) n`,
    [id, due, leased],
  )
  return id
}

const webhooksOn = (db: Database): Webhooks => ({
  secret: SECRET,
  mail: undefined,
  allowsLoopback: false,
  resolve: () => Promise.reject(new Error('no name is resolved')),
  database: async () => db,
  now: () => new Date(),
})

interface Plan {
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

/** How many rows of deliveries the steps of a plan have read. */
function rowsRead(plan: Plan): number {
  const each = plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)
  const own = plan['Relation Name'] === 'webhook_deliveries' ? each * plan['Actual Loops'] : 0
  return (plan.Plans ?? []).reduce((sum, child) => sum + rowsRead(child), own)
}

test('leases the delivery of one organisation without reading the long queue of another', async () => {
  const { db, pool, capture } = database
  await addEndpoint(MANY, 2)
  const other = await addEndpoint(1, 0)
  await pool.query('ANALYZE')
  const queries = await capture(() => deliverDue(webhooksOn(db)))
  const attempted = await pool.query('SELECT webhook FROM webhook_deliveries WHERE attempted_at IS NOT NULL')
  expect(attempted.rows).toEqual([{ webhook: other }])
  const leases = queries.filter(({ query }) => /^update "webhook_deliveries".*make_interval/s.test(query))
  expect(leases.length).toBeGreaterThan(0)
  await pool.query(
    `UPDATE webhook_deliveries SET due = now() - interval '1 minute', leased_until = NULL WHERE webhook = $1`,
    [other],
  )
  for (const { query, params } of leases.slice(0, 1)) {
    const { rows } = await pool.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${query}`, params)
    expect(rowsRead(rows[0]['QUERY PLAN'][0].Plan)).toBeLessThan(100)
  }
})

test('leases next for the organisation with the fewest attempts in progress', async () => {
  const { pool } = database
  await pool.query('DELETE FROM webhook_deliveries')
  // Three others have older deliveries, and an attempt each already.
  for (let others = 0; others < 3; others += 1) await addEndpoint(10, 1)
  const fresh = await addEndpoint(1, 0)
  await pool.query("UPDATE webhook_deliveries SET due = now() - interval '1 minute' WHERE webhook = $1", [fresh])
  await deliverDue(webhooksOn(database.db))
  const { rows } = await pool.query(
    'SELECT webhook FROM webhook_deliveries WHERE attempted_at IS NOT NULL ORDER BY attempted_at LIMIT 1',
  )
  expect(rows).toEqual([{ webhook: fresh }])
})
