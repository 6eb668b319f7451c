import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import { buildMerge, buildTransfer } from '#lib/wallet/calls.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { findBatch } from '../directory/payment.ts'
import { openApiClient } from '../support/api-client.ts'
import { employerWith } from '../support/fixtures.ts'
import { openProgramService, type Program, startProgram } from '../support/program.ts'
import type { SignedInPayer, TestService } from '../support/test-service.ts'
import { countFeeBumps, expectSettled } from '../support/transfers.ts'
import { type NamedStep, openSteps, type Steps } from './crash-steps.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let payee: string
let base: string
let program: Program
let steps: Steps

beforeAll(async () => {
  ;({ service, base } = await openProgramService({ TRANSFER_WAIT: '250' }))
  payee = (await enrol(service.ledger.network)).signer.publicKey()
  steps = await openSteps(service.ledger.proxy, service.database.url)
  program = await startProgram(base, service.variables)
})
afterAll(async () => {
  await program?.kill()
  await steps?.close()
  await service?.close()
})

async function post(
  employer: SignedInPayer,
  signedXDR: string,
  path = '/transfer',
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${base}/api${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${employer.session}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ signedXDR }),
  })
  return { status: response.status, body: await response.json() }
}

interface Work {
  innerHash: string
  employer: SignedInPayer
}

const lockTransfer = ({ innerHash }: Work) =>
  `SELECT 1 FROM transfers WHERE id = (SELECT transfer FROM envelopes WHERE inner_hash = '${innerHash}') FOR UPDATE`
const lockEnvelope = ({ innerHash }: Work) => `SELECT 1 FROM envelopes WHERE inner_hash = '${innerHash}' FOR UPDATE`
const lockOwn = (table: 'batches' | 'contractors', { employer }: Work) =>
  `SELECT 1 FROM ${table} WHERE organisation = (SELECT organisation FROM identities WHERE sub = '${employer.address}') FOR UPDATE`
const LOCK_BUDGET = `SELECT 1 FROM quotas WHERE account = '*' FOR UPDATE`

const before = { delivered: false }
const after = { delivered: true }
const recording = { from: 'simulateTransaction' }
const settling = { from: 'getTransaction' }

const STEPS: NamedStep<Work>[] = [
  ['before it is simulated', ({ atCall }) => atCall('simulateTransaction', before)],
  ['after it is simulated', ({ atCall }) => atCall('simulateTransaction', after)],
  ['before the float is known', ({ atCall }) => atCall('getLedgerEntries', before)],
  ['before the row is written', ({ atLock }) => atLock('LOCK TABLE transfers IN EXCLUSIVE MODE', recording)],
  ['between the row and the payout', ({ atLock }, work) => atLock(lockOwn('batches', work), recording)],
  ['between the payout and the quota', ({ atLock }) => atLock(LOCK_BUDGET, recording)],
  ['after the commit, before it is sent', ({ atCall }) => atCall('sendTransaction', before)],
  ['after it is sent, before the answer', ({ atCall }) => atCall('sendTransaction', after)],
  [
    'before the row says that it was sent',
    ({ atLock }, work) => atLock(lockEnvelope(work), { from: 'sendTransaction' }),
  ],
  ['before the first look', ({ atCall }) => atCall('getTransaction', before)],
  ['at a look, before its answer', ({ atCall }) => atCall('getTransaction', after)],
  ['before the row is settled', ({ atLock }, work) => atLock(lockTransfer(work), settling)],
  [
    'between the row and the contractor of the settlement',
    ({ atLock }, work) => atLock(lockOwn('contractors', work), settling),
  ],
  [
    'between the contractor and the payout of the settlement',
    ({ atLock }, work) => atLock(lockOwn('batches', work), settling),
  ],
  ['between the payout and the quota of the settlement', ({ atLock }) => atLock(LOCK_BUDGET, settling)],
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
  const { reached, letGo } = step(steps, { innerHash: hash, employer })
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

/** A call without a payee takes all steps but those of a payout. */
const STEPS_OF_CALLS = STEPS.filter(([name]) => !/^between the (row|contractor)/.test(name))

test.each(STEPS_OF_CALLS)('SIGKILL %s: the same call gets the true result', async (_, step) => {
  const employer = await service.employ()
  await service.db.execute(
    sql`INSERT INTO quotas (account, day) VALUES ('*', ${new Date().toISOString().slice(0, 10)}) ON CONFLICT DO NOTHING`,
  )
  const { signedXdr, hash } = await buildMerge(service.ledger.network, employer.signer)
  const { reached, letGo } = step(steps, { innerHash: hash, employer })
  const cut = post(employer, signedXdr, '/calls').catch(() => 'cut')
  await reached
  await program.kill()
  expect(await cut).toBe('cut')
  await letGo()
  program = await startProgram(base, service.variables)

  const answer = await post(employer, signedXdr, '/calls')
  expect(answer).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
  expect(await post(employer, signedXdr, '/calls')).toEqual(answer)
  expect(await countFeeBumps(service, hash)).toBe(1)
  expect(await service.findTransfer(hash)).toMatchObject({ kind: 'merge', status: 'succeeded' })
  await expectSettled(service, employer, hash)
  expect(await findDiscrepancies(service.db)).toEqual([])
})

test('settles in a new process, without a request, a transfer that was open when the old one was killed', async () => {
  const employer = await service.employ()
  const { owner, batch, other } = await openBatch(employer)
  const transfer = { to: payee, amount: 7n, opening: employer.opening }
  const { signedXdr, hash } = await buildTransfer(service.ledger.network, employer, transfer)
  const { reached, letGo } = steps.atCall('sendTransaction', before)
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
