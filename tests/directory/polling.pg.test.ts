import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import type { BatchProgress } from '#lib/directory/batches/status.ts'
import type { Payout } from '#lib/directory/payouts/payouts.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { type Employer, openEmployer } from '../support/fixtures.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { countFeeBumps, notFound } from '../support/transfers.ts'
import { findContradictions } from './bookkeeping.ts'
import { findBatch, preparePayment } from './payment.ts'

let service: TestService<'embedded'>
let address: string
beforeAll(async () => {
  service = await openTestService({ ledger: 'embedded', variables: { TRANSFER_WAIT: '2' } })
  address = (await enrol(service.ledger.network)).signer.publicKey()
})
afterAll(() => service.close())
afterEach(async () => {
  service.ledger.proxy.rule(null)
  expect(await findContradictions(service.db)).toEqual([])
})

/** An applied transfer whose submitting process exited before it learned the outcome. */
async function leaveOpenTransfer() {
  const prepared = await preparePayment(service, address)
  service.ledger.proxy.rule(({ method }) => (method === 'getTransaction' ? { rewrite: notFound } : 'pass'))
  await service.running.tracker.stop()
  const posted = service.post(prepared.wallet, { signedXDR: prepared.signedXdr })
  await expect.poll(async () => (await service.findTransfer(prepared.hash))?.status).toBe('open')
  await expect.poll(() => countFeeBumps(service, prepared.hash)).toBe(1)
  service.ledger.proxy.rule(null)
  renew()
  return { ...prepared, posted }
}

/** Gives the service a new submission that tracks nothing yet, like a process that has just started. */
function renew() {
  const { network, database, now, tracker } = service.running
  Object.assign(tracker, openTracker({ network, database, now }))
}

const polls: [string, (employer: Employer, batch: { id: string }) => Promise<unknown>][] = [
  ['GET /batches/{id}', async (employer, batch) => (await findBatch(employer, batch)).payouts[0]?.status],
  [
    'GET /batches/{id}/status',
    async (employer, { id }) => {
      const { body } = await employer.ask<BatchProgress>('GET', `/batches/${id}/status`)
      return body.status === 'completed' ? 'paid' : body.status
    },
  ],
  [
    'GET /payouts',
    async (employer, { id }) =>
      (await employer.ask<{ payouts: Payout[] }>('GET', `/payouts?batchId=${id}`)).body.payouts[0]?.status,
  ],
]
test.each(polls)('%s', async (_, poll) => {
  const { employer, batch, hash, posted } = await leaveOpenTransfer()
  expect((await service.findTransfer(hash))?.status).toBe('open')
  await expect.poll(() => poll(employer, batch)).toBe('paid')
  expect(await posted).toMatchObject({ status: 500 })
})

test('does not settle the transfer on a poll by another organisation', async () => {
  const { hash, employer, batch, posted } = await leaveOpenTransfer()
  const stranger = await openEmployer(service, (await service.employ(1n)).address)
  await stranger.ask('GET', '/payouts')
  expect((await service.findTransfer(hash))?.status).toBe('open')
  await expect.poll(async () => (await findBatch(employer, batch)).payouts[0]?.status).toBe('paid')
  await posted
})

test('makes at most four lookups for twenty concurrent polls, and responds while the RPC is down', async () => {
  const { employer, batch, hash, posted } = await leaveOpenTransfer()
  service.ledger.proxy.rule(() => ({ status: 503 }))
  expect((await findBatch(employer, batch)).payouts[0]?.status).toBe('pending')
  let calls = 0
  service.ledger.proxy.rule(({ method }) => {
    if (method === 'getTransaction') calls += 1
    return 'pass'
  })
  await Promise.all(Array.from({ length: 20 }, () => findBatch(employer, batch)))
  await expect.poll(async () => (await service.findTransfer(hash))?.status).toBe('succeeded')
  expect(calls).toBeLessThanOrEqual(4)
  expect((await findBatch(employer, batch)).payouts[0]?.status).toBe('paid')
  await posted
})
