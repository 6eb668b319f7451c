import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { batchRow, contractorRow, insertRows, jobRow, organisationRow, payoutRow } from '#lib/cli/seed/rows.ts'
import { isWorkWaiting, leaseLine } from '#lib/relay/lease.ts'
import { type Channel, RELAY_TIMES, type Relay } from '#lib/relay/relay.ts'
import { type CapturedDatabase, openCaptured } from '../support/captured.ts'

/** How many lines of runs wait for the channel, and how many of jobs for any. Twice as many have ended. */
const WAITING = 50_000
/** The employers of the runs. */
const OWNERS = 10
const [TOKEN, CHANNEL] = ['C', 'GCHANNEL']

let database: CapturedDatabase
beforeAll(async () => {
  database = await openCaptured()
  const { db } = database
  const organisation = organisationRow()
  const of = { organisation: organisation.id }
  const [batch, contractor] = [batchRow({ ...of, status: 'started' }), contractorRow(of)]
  const payout = payoutRow({ ...of, batch: batch.id, contractor: contractor.id, status: 'ready' })
  const [run, job] = [jobRow(), jobRow({ userSub: 'bob' })]
  const people = { organisations: [organisation], contractors: [contractor] }
  await insertRows(db, { ...people, batches: [batch], payouts: [payout], jobs: [run, job] })
  const insert = (id: string, isOfRun: boolean) => sql`
    INSERT INTO relay_lines (job, position, payout, spender, live_until, sealed_amount, quota_account, channel, outcome, hash, settled_at, due)
    SELECT ${id}::uuid, n, CASE WHEN ${isOfRun} THEN ${payout.id}::uuid END, CASE WHEN ${isOfRun} THEN ${CHANNEL} END,
      CASE WHEN ${isOfRun} THEN 1000000 END,
      CASE WHEN waits THEN 'sealed' END, 'owner ' || n % ${OWNERS}, CASE WHEN NOT waits THEN ${CHANNEL} END,
      CASE WHEN NOT waits THEN 'paid' END, CASE WHEN NOT waits THEN 'hash' END, CASE WHEN NOT waits THEN now() END,
      now() - interval '1 hour' + n * interval '1 ms'
    FROM generate_series(1, ${3 * WAITING}) AS n, LATERAL (SELECT n % 3 = 0 AS waits) AS made`
  await db.execute(insert(run.id, true))
  await db.execute(insert(job.id, false))
  await db.execute(sql`INSERT INTO transfers (kind, account, recipient, sequence_number, quota_day, bid, recorded_ledger, status, hash,
      settled_at, line_job, line_position)
    SELECT 'transfer', channel, 'GPAYEE', position, '2026-11-20', 1, 1, 'succeeded', hash, settled_at, job, position
    FROM ${relayLines} WHERE outcome = 'paid'`)
  await db.insert(relayChannels).values({ token: TOKEN, address: CHANNEL, seenAt: new Date(), runs: true })
  await database.pool.query('VACUUM ANALYZE')
})
afterAll(() => database?.close())

interface Plan {
  'Relation Name'?: string
  /** of each loop, like the removed rows */
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Plan[]
}

/** The rows of tables that the steps of a plan have read in all, those that they removed included. */
function rowsOf(plan: Plan): number {
  const removed = (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Index Recheck'] ?? 0)
  const own = plan['Relation Name'] === undefined ? 0 : (plan['Actual Rows'] + removed) * plan['Actual Loops']
  return (plan.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), Math.round(own))
}

/** What `work` resolves to, and the rows that its statements read. Nothing that it changes is kept. */
async function measure<Result>(work: (relay: Relay) => Promise<Result>): Promise<{ result: Result; rows: number }> {
  const client = await database.pool.connect()
  try {
    let outcome: { result: Result } | undefined
    const statements = await database.capture(() =>
      database.db
        .transaction(async (tx) => {
          const relay = { database: async () => tx, token: TOKEN, relayKey: 'key', times: RELAY_TIMES }
          outcome = { result: await work({ ...relay, channels: [{ address: CHANNEL }] } as unknown as Relay) }
          tx.rollback()
        })
        .catch(() => undefined),
    )
    if (!outcome) throw new Error('the work has failed')
    let rows = 0
    for (const { query, params } of statements.filter((one) => /^(select|update)/.test(one.query))) {
      await client.query('BEGIN')
      const explained = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${query}`, params)
      rows += rowsOf(explained.rows[0]['QUERY PLAN'][0].Plan)
      await client.query('ROLLBACK')
    }
    return { ...outcome, rows }
  } finally {
    client.release()
  }
}

test.each([
  ['of a run', { canRun: true }, { spender: CHANNEL, quotaAccount: 'owner 3' }],
  ['of the next owner', { owner: 'owner 3', canRun: true }, { spender: CHANNEL, quotaAccount: 'owner 6' }],
  ['of a job', { canRun: false }, { spender: null, position: 3 }],
])(
  'leasing a line %s reads a few rows of each owner, of 100,000 that wait beside 200,000 that have ended',
  async (_, given, line) => {
    const { owner, canRun }: { owner?: string; canRun: boolean } = given
    const held = owner === undefined ? undefined : { transfer: randomUUID(), owner }
    const { result, rows } = await measure((relay) =>
      leaseLine(relay, { address: CHANNEL } as Channel, { held, canRun }),
    )
    expect(result).toMatchObject({ ...line, outcome: null, channel: CHANNEL })
    expect(rows).toBeGreaterThan(0)
    expect(rows).toBeLessThanOrEqual(5 * (OWNERS + 1))
  },
)

test('a host finds out whether a line waits from a few rows', async () => {
  const { result, rows } = await measure(isWorkWaiting)
  expect(result).toBe(true)
  expect(rows).toBeLessThanOrEqual(5)
})

test('a host finds out that only lines of other channels wait from a few rows', async () => {
  await database.db.execute(
    sql`UPDATE ${relayLines} SET spender = 'GOTHER' WHERE outcome IS NULL AND spender IS NOT NULL`,
  )
  await database.db.execute(
    sql`UPDATE ${relayLines} SET outcome = 'failed', sealed_amount = NULL, settled_at = now() WHERE outcome IS NULL AND spender IS NULL`,
  )
  await database.pool.query('VACUUM ANALYZE')
  const { result, rows } = await measure(isWorkWaiting)
  expect(result).toBe(false)
  expect(rows).toBeLessThanOrEqual(5)
})
