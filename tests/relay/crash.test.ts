import { eq } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { startChild } from './relay-child.ts'
import { openRelayService, type RelayService } from './relay-service.ts'

vi.setConfig({ testTimeout: 300_000 })

let fixture: RelayService
let watcher: Client
beforeAll(async () => {
  fixture = await openRelayService({ channels: 1 })
  watcher = new Client({ connectionString: fixture.database.url })
  await watcher.connect()
})
afterAll(async () => {
  await watcher?.end()
  await fixture?.close()
})
afterEach(() => fixture.ledger.proxy.rule(null))

/** Resolves once the relay is at the step; what it does there it does not get past before it is killed. */
type Step = (job: string) => { reached: Promise<void>; letGo: () => Promise<void> }

/** It makes its nth call of this method; `delivered` lets the call through and withholds the answer. */
const atCall =
  (method: string, nth: number, { delivered }: { delivered: boolean }): Step =>
  () => {
    let seen = 0
    const reached = new Promise<void>((resolve) => {
      fixture.ledger.proxy.rule((call): Fault => {
        if (call.method !== method) return 'pass'
        seen += 1
        if (seen < nth) return 'pass'
        // The network has a moment to take in what was delivered.
        setTimeout(resolve, delivered ? 50 : 0)
        return { hang: true, delivered }
      })
    })
    return { reached, letGo: async () => fixture.ledger.proxy.rule(null) }
  }

/** It waits for a row that this test has locked since the nth call of `method`. */
const atRow =
  (row: (job: string) => string, method: string, nth: number): Step =>
  (job) => {
    const holder = new Client({ connectionString: fixture.database.url })
    const take = async () => {
      await holder.connect()
      await holder.query('BEGIN')
      await holder.query(`${row(job)} FOR UPDATE`)
    }
    let seen = 0
    const reached = new Promise<void>((resolve, reject) => {
      let taken: Promise<void> | undefined
      fixture.ledger.proxy.rule(async (call): Promise<Fault> => {
        if (call.method === method) seen += 1
        if (call.method === method && seen >= nth) {
          taken ??= take().then(() => void waitForBlocked().then(resolve, reject), reject)
          await taken
        }
        return 'pass'
      })
    })
    return {
      reached,
      letGo: async () => {
        fixture.ledger.proxy.rule(null)
        await holder.end()
      },
    }
  }

async function waitForBlocked(): Promise<void> {
  for (;;) {
    const { rows } = await watcher.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    if (rows.length > 0) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const item = (job: string) => `SELECT 1 FROM batch_items WHERE job = '${job}'`
const job = (id: string) => `SELECT 1 FROM batch_jobs WHERE id = '${id}'`
const channel = () => 'SELECT 1 FROM relay_channels'
const transfer = (id: string) =>
  `SELECT 1 FROM transfers WHERE id = (SELECT transfer FROM envelopes JOIN batch_items USING (inner_hash) WHERE job = '${id}')`

// An item's calls in their order. Entries: the channel, the two parties, the sequence number, the sponsor's balance.
// Simulations: the auditor's key, the transfer as the wallet runs it, the transfer as the sponsor runs it.
const STEPS: [string, Step][] = [
  ['before the channel is looked at', atCall('getLedgerEntries', 1, { delivered: false })],
  ['with the item taken, before the parties are read', atCall('getLedgerEntries', 2, { delivered: false })],
  ['before the auditor is known', atCall('simulateTransaction', 1, { delivered: true })],
  ['before the sequence number is read', atCall('getLedgerEntries', 3, { delivered: false })],
  ['before the wallet has simulated it', atCall('simulateTransaction', 2, { delivered: true })],
  ['before the signed transfer is stored', atRow(item, 'simulateTransaction', 2)],
  [
    'with the signed transfer stored, before the sponsor sees it',
    atCall('simulateTransaction', 3, { delivered: false }),
  ],
  ['before the sponsor is bound to it', atRow(item, 'simulateTransaction', 3)],
  ['after the sponsor is bound to it, before it is sent', atCall('sendTransaction', 1, { delivered: false })],
  ['after it is sent, before the answer', atCall('sendTransaction', 1, { delivered: true })],
  ['before the row says that it was sent', atRow(transfer, 'sendTransaction', 1)],
  ['before the first look', atCall('getTransaction', 1, { delivered: false })],
  ['before the transfer is settled', atRow(transfer, 'getTransaction', 1)],
  ['with the transfer settled, before the item is', atRow(job, 'sendTransaction', 1)],
  ['in the middle of settling the item', atRow(channel, 'sendTransaction', 1)],
]

test.each(STEPS)('SIGKILL %s: another relay takes over, and the item is paid once', async (_, step) => {
  const client = await fixture.client()
  const payee = await fixture.payee()
  await fixture.hire(client, [payee.signer.publicKey()])
  const relay = await startChild(fixture.variables)
  // The first job takes the channel's balance from the ledger; the calls of the second are counted.
  const warm = await fixture.post(client, { amounts: [5] })
  expect(await fixture.ended(client, String(warm.body.jobId))).toMatchObject({ status: 'completed' })
  const { jobId } = (await fixture.post(client, { amounts: [7] })).body as { jobId: string }
  const { reached, letGo } = step(jobId)
  await reached
  await relay.kill()
  await letGo()
  // As if the ten seconds without a heartbeat had passed already.
  await watcher.query(`UPDATE pgboss.job SET heartbeat_on = heartbeat_on - interval '10 s' WHERE state = 'active'`)
  expect((await fixture.read(client, jobId)).body).toMatchObject({ status: 'running', results: [] })

  const other = await fixture.relay()
  try {
    const ended = await fixture.ended(client, jobId)
    expect(ended).toMatchObject({ status: 'completed', results: [{ i: 0, status: 'SUCCESS' }] })
    expect(await fixture.received(payee)).toBe(12n)
    const rows = await fixture.db.select().from(transfers).where(eq(transfers.recipient, payee.signer.publicKey()))
    expect(rows.filter(({ status }) => status === 'succeeded')).toHaveLength(2)
    expect(rows.some(({ status }) => status === 'open')).toBe(false)
    expect(rows.map(({ quotaAccount }) => quotaAccount)).toEqual(rows.map(() => client.address))
    const quotas = await fixture.db.query.quotas.findMany()
    expect(quotas.find(({ account }) => account === client.address)).toMatchObject({ held: 0n, count: 2 })
  } finally {
    await other.close()
  }
})
