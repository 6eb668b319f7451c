import { Keypair, xdr } from '@stellar/stellar-sdk'
import { afterAll, expect, test } from 'vitest'
import { readEnvironment } from '#lib/config/environment.ts'
import { startRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { startCountingGate } from '../bench/counting-gate.ts'
import { disposable } from '../support/disposable.ts'
import { type Call, startFaultProxy } from '../support/fault-proxy.ts'
import { passLedgers } from '../support/ledgers.ts'
import { serveJobs } from './relay-service.ts'

const CHANNELS = 12

/**
 * The maximum number of RPC calls and SQL statements for one line: in total, and per ledger until it ends. One request
 * per idle channel and ledger would add eleven.
 */
const MAX_CALLS = { once: 20, perLedger: 3 }
const MAX_STATEMENTS = { once: 80, perLedger: 6 }

const fixture = await serveJobs({ channels: CHANNELS })
const proxy = await startFaultProxy(fixture.ledger.devnet.rpcUrl)
// The gate counts statements on their way to PostgreSQL.
const gate = await startCountingGate(fixture.database.url)
afterAll(proxy.close)
afterAll(gate.close)

/** Which of these accounts an RPC request names. */
function named({ method, params }: Call, addresses: readonly string[]): string[] {
  if (method !== 'getLedgerEntries') return addresses.filter((address) => JSON.stringify(params).includes(address))
  const keys = (params.keys as string[]).map((key) => xdr.LedgerKey.fromXdr(key, 'base64').toXdr('hex'))
  return addresses.filter((address) => {
    const raw = Buffer.from(Keypair.fromPublicKey(address).rawPublicKey()).toString('hex')
    return keys.some((key) => key.includes(raw))
  })
}

test('sends RPC requests only about the channel that pays the line', async () => {
  const variables = { ...fixture.variables, DATABASE_URL: gate.url, STELLAR_RPC_URL: proxy.url }
  await using service = disposable(await startService(readEnvironment(variables), undefined, 0))
  await using _relay = disposable(await startRelay(service))
  const { client } = await fixture.engaged()
  const pay = async (amount: number) => {
    const jobId = await fixture.begin(client, amount)
    expect(await fixture.ended(client, jobId)).toMatchObject({ status: 'completed' })
    const lines = await fixture.db.query.relayLines.findMany({ where: (line, { eq }) => eq(line.job, jobId) })
    return lines[0]?.channel
  }
  // Each channel's balance is read from the ledger's events once, when the relay starts.
  const isChecked = ({ problem, readAt }: { problem: string | null; readAt: Date | null }) =>
    !problem && readAt !== null
  const checked = async () => (await fixture.db.query.relayChannels.findMany()).filter(isChecked).length
  await expect.poll(checked).toBe(CHANNELS)
  const addresses = fixture.channels.map((channel) => channel.publicKey())
  const asked = new Set<string>()
  let chores = 0
  proxy.rule((call) => {
    const found = named(call, addresses)
    // The periodic check requests all channels together, every 20 seconds.
    if (found.length === CHANNELS) chores += 1
    else for (const address of found) asked.add(address)
    return 'pass'
  })
  const countCalls = () => [...proxy.calls.values()].reduce((sum, count) => sum + count, 0)
  // Bypasses the proxy, which counts.
  const readLedger = async () => (await fixture.ledger.network.rpc.getLatestLedger()).sequence
  const callsBefore = countCalls()
  const choresBefore = chores
  const first = await readLedger()
  gate.reset()
  const paying = await pay(1)
  // Includes ledgers in which no transfer is open.
  await passLedgers(fixture.ledger.network, 21)
  const statements = gate.count()
  const calls = countCalls() - callsBefore - (chores - choresBefore)
  const ledgers = (await readLedger()) - first
  expect([...asked]).toEqual([paying])
  expect(calls).toBeLessThanOrEqual(MAX_CALLS.once + MAX_CALLS.perLedger * ledgers)
  expect(statements).toBeLessThanOrEqual(MAX_STATEMENTS.once + MAX_STATEMENTS.perLedger * ledgers)
})
