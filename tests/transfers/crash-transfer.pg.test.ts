import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import { EVERYBODY } from '#lib/transfers/quota.ts'
import { buildMerge, buildTransfer } from '#lib/wallet/calls.ts'
import { findContradictions } from '../directory/bookkeeping.ts'
import { findBatch } from '../directory/payment.ts'
import { employerWith } from '../support/fixtures.ts'
import { type MortalService, startMortal } from '../support/mortal.ts'
import { expectSponsoredOnce, quotaOf } from '../support/paid-once.ts'
import { openTestService, type SignedInPayer, type TestService } from '../support/test-service.ts'
import { killAt, type NamedStep, openSteps, type Step, type Steps } from './crash-steps.ts'
import { chargeQuota, findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let payee: string
let program: MortalService
let steps: Steps

beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded', choresEveryMs: 0 })
  payee = (await enrol(service.ledger.network)).signer.publicKey()
  steps = await openSteps(service.ledger.proxy, service.database.url)
  await start()
})
afterAll(async () => {
  await program?.kill()
  await steps?.close()
  await service?.close()
})

/** Starts a service, to which all requests go from now on. */
async function start(): Promise<void> {
  program = await startMortal(service.variables)
  program.provide()
}

async function post(
  employer: SignedInPayer,
  signedXDR: string,
  path = '/transfer',
): Promise<{ status: number; body: unknown }> {
  const { status, body } = await service.ask('POST', path, { session: employer.session, body: { signedXDR } })
  return { status, body }
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
const LOCK_BUDGET = `SELECT 1 FROM quotas WHERE account = '${EVERYBODY}' FOR UPDATE`

const recording = { from: 'simulateTransaction' }
const settling = { from: 'getTransaction' }

const STEPS: NamedStep<Work>[] = [
  ['before it is simulated', ({ beforeCall }) => beforeCall('simulateTransaction')],
  ['after it is simulated', ({ afterCall }) => afterCall('simulateTransaction')],
  ['before the float is known', ({ beforeCall }) => beforeCall('getLedgerEntries')],
  ['before the row is written', ({ atLock }) => atLock('LOCK TABLE transfers IN EXCLUSIVE MODE', recording)],
  ['between the row and the payout', ({ atLock }, work) => atLock(lockOwn('batches', work), recording)],
  ['between the payout and the quota', ({ atLock }) => atLock(LOCK_BUDGET, recording)],
  ['after the commit, before it is sent', ({ beforeCall }) => beforeCall('sendTransaction')],
  ['after it is sent, before the answer', ({ afterCall }) => afterCall('sendTransaction')],
  [
    'before the row says that it was sent',
    ({ atLock }, work) => atLock(lockEnvelope(work), { from: 'sendTransaction' }),
  ],
  ['before the first look', ({ beforeCall }) => beforeCall('getTransaction')],
  ['at a look, before its answer', ({ afterCall }) => afterCall('getTransaction')],
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

/** The row of today's budget, which a step locks. */
async function openBudget(): Promise<void> {
  if (!(await quotaOf(service, EVERYBODY))) await chargeQuota(service.db, EVERYBODY, 0)
}

async function restartAt(step: Step): Promise<void> {
  await killAt(step, program)
  await start()
}

/** A locked batch with one payout to the payee, and a second that must stay as it is. */
async function openBatch(employer: SignedInPayer) {
  const owner = await employerWith(service, employer)
  const contractor = await owner.engage('the payee', { address: payee })
  const batch = await owner.prepare([contractor])
  const other = await owner.prepare([contractor])
  return { owner, batch, other }
}

test.each(STEPS)('ends %s: the same transaction gets the true result', async (_, step) => {
  const employer = await service.employ()
  const transfer = { to: payee, amount: 7n, opening: employer.opening }
  await openBudget()
  const { owner, batch, other } = await openBatch(employer)
  const { signedXdr, hash } = await buildTransfer(service.ledger.network, employer, transfer)
  const reached = step(steps, { innerHash: hash, employer })
  void post(employer, signedXdr)
  await restartAt(reached)

  const answer = await post(employer, signedXdr)
  expect(answer).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
  expect(await post(employer, signedXdr)).toEqual(answer)
  await expectSponsoredOnce(service, employer, hash)
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

test.each(STEPS_OF_CALLS)('ends %s: the same call gets the true result', async (_, step) => {
  const employer = await service.employ()
  await openBudget()
  const { signedXdr, hash } = await buildMerge(service.ledger.network, employer.signer)
  const reached = step(steps, { innerHash: hash, employer })
  void post(employer, signedXdr, '/calls')
  await restartAt(reached)

  const answer = await post(employer, signedXdr, '/calls')
  expect(answer).toMatchObject({ status: 200, body: { status: 'SUCCESS' } })
  expect(await post(employer, signedXdr, '/calls')).toEqual(answer)
  await expectSponsoredOnce(service, employer, hash)
  expect(await service.findTransfer(hash)).toMatchObject({ kind: 'merge' })
  expect(await findDiscrepancies(service.db)).toEqual([])
})

test('settles in a new process, without a request, a transfer that was open when the old one was killed', async () => {
  const employer = await service.employ()
  const { owner, batch, other } = await openBatch(employer)
  const transfer = { to: payee, amount: 7n, opening: employer.opening }
  const { signedXdr, hash } = await buildTransfer(service.ledger.network, employer, transfer)
  const reached = steps.beforeCall('sendTransaction')
  void post(employer, signedXdr)
  await restartAt(reached)
  await expect.poll(async () => (await service.findTransfer(hash))?.status).toBe('succeeded')
  await expectSponsoredOnce(service, employer, hash)
  expect(await findContradictions(service.db)).toEqual([])
  expect(await findBatch(owner, batch)).toMatchObject({ status: 'completed', payouts: [{ status: 'paid' }] })
  expect(await findBatch(owner, other)).toMatchObject({ status: 'ready', payouts: [{ status: 'ready' }] })
})
