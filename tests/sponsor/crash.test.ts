import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/participants.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { findBatch } from '../directory/payment.ts'
import { openApiClient } from '../support/api-client.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { employerWith } from '../support/fixtures.ts'
import { freePort } from '../support/port.ts'
import { type Program, startProgram } from '../support/program.ts'
import { openTestService, type SignedInPayer, type TestService } from '../support/test-service.ts'
import { countFeeBumps, expectSettled } from '../support/transfers.ts'

let service: TestService<'embedded'>
let payee: string
let base: string
let program: Program
let watcher: Client

beforeAll(async () => {
  const port = await freePort()
  base = `http://localhost:${port}`
  service = await openTestService({
    ledger: 'embedded',
    choresEveryMs: 0,
    variables: { PORT: String(port), PUBLIC_URL: base, TRANSFER_WAIT: '20' },
  })
  payee = (await enrol(service.ledger.network)).signer.publicKey()
  watcher = new Client({ connectionString: service.database.url })
  await watcher.connect()
  program = await startProgram(base, service.variables)
})
afterAll(async () => {
  await program?.kill()
  await watcher?.end()
  await service?.close()
})

async function post(employer: SignedInPayer, signedXDR: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${base}/api/transfer`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${employer.session}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ signedXDR }),
  })
  return { status: response.status, body: await response.json() }
}

/** Resolves once the program is at the step; what it does there it must not get past before it is killed. */
type Step = (innerHash: string, employer: SignedInPayer) => { reached: Promise<void>; letGo: () => Promise<void> }

/** The program has asked the RPC this; `delivered` lets the call through and withholds the answer. */
const atCall =
  (method: string, { delivered }: { delivered: boolean }): Step =>
  () => {
    const reached = new Promise<void>((resolve) => {
      service.ledger.proxy.rule((call): Fault => {
        if (call.method !== method) return 'pass'
        // The network has a moment to take in what was delivered.
        setTimeout(resolve, delivered ? 50 : 0)
        return { hang: true, delivered }
      })
    })
    return { reached, letGo: async () => service.ledger.proxy.rule(null) }
  }

/** The program waits for a lock of the database that this test holds. */
const atLock =
  (statement: (employer: SignedInPayer, innerHash: string) => string, when: string): Step =>
  (innerHash, employer) => {
    const holder = new Client({ connectionString: service.database.url })
    const take = async () => {
      await holder.connect()
      await holder.query('BEGIN')
      await holder.query(statement(employer, innerHash))
    }
    const reached = new Promise<void>((resolve, reject) => {
      let taken: Promise<void> | undefined
      service.ledger.proxy.rule(async (call): Promise<Fault> => {
        if (call.method === when) {
          taken ??= take().then(() => void waitForBlocked().then(resolve, reject), reject)
          await taken
        }
        return 'pass'
      })
    })
    return {
      reached,
      letGo: async () => {
        service.ledger.proxy.rule(null)
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

const lockRow = (_: SignedInPayer, hash: string) =>
  `SELECT 1 FROM transfers WHERE id = (SELECT transfer FROM envelopes WHERE inner_hash = '${hash}') FOR UPDATE`
const lockEnvelope = (_: SignedInPayer, hash: string) =>
  `SELECT 1 FROM envelopes WHERE inner_hash = '${hash}' FOR UPDATE`
const ownRows = ({ address }: SignedInPayer) =>
  `organisation = (SELECT organisation FROM identities WHERE sub = '${address}') FOR UPDATE`
const lockBatch = (employer: SignedInPayer) => `SELECT 1 FROM batches WHERE ${ownRows(employer)}`
const lockContractor = (employer: SignedInPayer) => `SELECT 1 FROM contractors WHERE ${ownRows(employer)}`
const lockBudget = () => `SELECT 1 FROM quotas WHERE account = '*' FOR UPDATE`

const STEPS: [string, Step][] = [
  ['before it is simulated', atCall('simulateTransaction', { delivered: false })],
  ['after it is simulated', atCall('simulateTransaction', { delivered: true })],
  ['before the float is known', atCall('getLedgerEntries', { delivered: false })],
  ['before the row is written', atLock(() => 'LOCK TABLE transfers IN EXCLUSIVE MODE', 'simulateTransaction')],
  ['between the row and the payout', atLock(lockBatch, 'simulateTransaction')],
  ['between the payout and the quota', atLock(lockBudget, 'simulateTransaction')],
  ['after the commit, before it is sent', atCall('sendTransaction', { delivered: false })],
  ['after it is sent, before the answer', atCall('sendTransaction', { delivered: true })],
  ['before the row says that it was sent', atLock(lockEnvelope, 'sendTransaction')],
  ['before the first look', atCall('getTransaction', { delivered: false })],
  ['at a look, before its answer', atCall('getTransaction', { delivered: true })],
  ['before the row is settled', atLock(lockRow, 'getTransaction')],
  ['between the row and the contractor of the settlement', atLock(lockContractor, 'getTransaction')],
  ['between the contractor and the payout of the settlement', atLock(lockBatch, 'getTransaction')],
  ['between the payout and the quota of the settlement', atLock(lockBudget, 'getTransaction')],
]

/** A locked batch with one payout to the payee, and a second that must stay as it is. */
async function openBatch(employer: SignedInPayer) {
  const owner = await employerWith({ ...(await openApiClient({ base, fetch })), db: service.db }, employer)
  const contractor = await owner.engage('the payee', { address: payee })
  const batch = await owner.prepare([contractor])
  const other = await owner.prepare([contractor])
  return { owner, batch, other }
}

test.each(STEPS)('SIGKILL %s: the same transaction gets the true result', async (_, step) => {
  const employer = await service.employ()
  const transfer = { to: payee, amount: 7n, opening: employer.opening }
  // The rows that a step locks are there from the start.
  await service.db.execute(
    sql`INSERT INTO quotas (account, day) VALUES ('*', ${new Date().toISOString().slice(0, 10)}) ON CONFLICT DO NOTHING`,
  )
  const { owner, batch, other } = await openBatch(employer)
  const { signedXdr, hash } = await buildTransfer(service.ledger.network, employer, transfer)
  const { reached, letGo } = step(hash, employer)
  const cut = post(employer, signedXdr).then(
    () => 'answered',
    () => 'cut',
  )
  await reached
  await program.kill()
  expect(await cut).toBe('cut')
  await letGo()
  program = await startProgram(base, service.variables)

  const answer = await post(employer, signedXdr)
  expect(answer).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
  expect(await post(employer, signedXdr)).toEqual(answer)
  expect(await countFeeBumps(service, hash)).toBe(1)
  expect(await service.findTransfer(hash)).toMatchObject({ status: 'succeeded' })
  await expectSettled(service, employer, hash)
  expect(await findBatch(owner, batch)).toMatchObject({
    status: 'completed',
    payouts: [{ status: 'paid', txHash: (answer.body as { hash: string }).hash }],
  })
  expect(await findBatch(owner, other)).toMatchObject({ status: 'ready', payouts: [{ status: 'ready' }] })
  expect(await findContradictions(service.db)).toEqual([])
  const floats = await service.db.query.sponsorFloats.findMany()
  expect(floats.map(({ held }) => held)).toEqual([0n])
})

test('what was open at a SIGKILL is settled by the next process, though nobody asks', async () => {
  const employer = await service.employ()
  const { owner, batch, other } = await openBatch(employer)
  const transfer = { to: payee, amount: 7n, opening: employer.opening }
  const { signedXdr, hash } = await buildTransfer(service.ledger.network, employer, transfer)
  const { reached, letGo } = atCall('sendTransaction', { delivered: false })(hash, employer)
  const cut = post(employer, signedXdr).catch(() => undefined)
  await reached
  await program.kill()
  await cut
  await letGo()
  program = await startProgram(base, service.variables)
  await expect.poll(async () => (await service.findTransfer(hash))?.status).toBe('succeeded')
  expect(await countFeeBumps(service, hash)).toBe(1)
  await expectSettled(service, employer, hash)
  expect(await findContradictions(service.db)).toEqual([])
  expect(await findBatch(owner, batch)).toMatchObject({ status: 'completed', payouts: [{ status: 'paid' }] })
  expect(await findBatch(owner, other)).toMatchObject({ status: 'ready', payouts: [{ status: 'ready' }] })
})
