import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/participants.ts'
import type { BatchProgress } from '#lib/directory/batches.ts'
import type { Payout } from '#lib/directory/payouts/payouts.ts'
import { openSubmission } from '#lib/submission/submission.ts'
import { type Employer, openEmployer } from '../support/fixtures.ts'
import { openTown, type Town } from '../support/town.ts'
import { countFeeBumps, notFound } from '../support/transfers.ts'
import { findContradictions } from './bookkeeping.ts'
import { findBatch, preparePayment } from './payment.ts'

const POLL = { timeout: 10_000 }
let town: Town
let address: string
beforeAll(async () => {
  town = await openTown({ TRANSFER_WAIT: '2' })
  address = (await enrol(town.network)).signer.publicKey()
})
afterAll(() => town.close())
afterEach(async () => {
  town.proxy.rule(null)
  expect(await findContradictions(town.db)).toEqual([])
})

/** A transfer that is on the ledger while the process that sent it knows nothing of that, and is gone. */
async function leaveBehind() {
  const prepared = await preparePayment(town, address)
  town.proxy.rule(({ method }) => (method === 'getTransaction' ? { rewrite: notFound } : 'pass'))
  await town.service.submission.stop()
  const posted = town.post(prepared.wallet, { signedXDR: prepared.signedXdr })
  await expect.poll(async () => (await town.row(prepared.hash))?.status).toBe('open')
  await expect.poll(() => countFeeBumps(town, prepared.hash)).toBe(1)
  town.proxy.rule(null)
  renew()
  return { ...prepared, posted }
}

/** As a process that has just started: it follows nothing. */
function renew() {
  const { network, database, now, submission } = town.service
  Object.assign(submission, openSubmission({ network, database, now, books: submission.books }))
}

const looks: [string, (office: Employer, batch: { id: string }) => Promise<unknown>][] = [
  ['GET /batches/{id}', async (office, batch) => (await findBatch(office, batch)).payouts[0]?.status],
  [
    'GET /batches/{id}/status',
    async (office, { id }) => {
      const { body } = await office.ask<BatchProgress>('GET', `/batches/${id}/status`)
      return body.status === 'completed' ? 'paid' : body.status
    },
  ],
  [
    'GET /payouts',
    async (office, { id }) =>
      (await office.ask<{ payouts: Payout[] }>('GET', `/payouts?batchId=${id}`)).body.payouts[0]?.status,
  ],
]
test.each(looks)('%s', async (_, look) => {
  const { office, batch, hash, posted } = await leaveBehind()
  expect((await town.row(hash))?.status).toBe('open')
  await expect.poll(() => look(office, batch), POLL).toBe('paid')
  expect(await posted).toMatchObject({ status: 500 })
})

test('somebody else’s look leaves it alone', async () => {
  const { hash, office, batch, posted } = await leaveBehind()
  const stranger = await openEmployer(town, (await town.employ(1n)).address)
  await stranger.ask('GET', '/payouts')
  expect((await town.row(hash))?.status).toBe('open')
  await expect.poll(async () => (await findBatch(office, batch)).payouts[0]?.status, POLL).toBe('paid')
  await posted
})

test('twenty looks are one look at the ledger; and while the RPC is down they are answered all the same', async () => {
  const { office, batch, hash, posted } = await leaveBehind()
  town.proxy.rule(() => ({ status: 503 }))
  expect((await findBatch(office, batch)).payouts[0]?.status).toBe('pending')
  let calls = 0
  town.proxy.rule(({ method }) => {
    if (method === 'getTransaction') calls += 1
    return 'pass'
  })
  await Promise.all(Array.from({ length: 20 }, () => findBatch(office, batch)))
  await expect.poll(async () => (await town.row(hash))?.status).toBe('succeeded')
  expect(calls).toBeLessThanOrEqual(4)
  expect((await findBatch(office, batch)).payouts[0]?.status).toBe('paid')
  await posted
})
