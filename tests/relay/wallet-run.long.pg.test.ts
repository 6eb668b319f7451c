import { expect, test } from 'vitest'
import { runBatch } from '#lib/sdk/run.ts'

import {
  call,
  callsOf,
  expectPaidOnce,
  interruptAt,
  prepare,
  prepareDifferently,
  receivedBy,
  requestOf,
  serveWalletRuns,
} from './wallet-runs.ts'

serveWalletRuns()

/** Instructions, lock, two delegations, start, two revocations. */
const POSTS = 7

// To the service, a later request that is lost on its way is the same as the response to the one before.
const INTERRUPTIONS = [
  ['before', 1] as const,
  ...Array.from({ length: POSTS }, (_, index) => ['after', index + 1] as const),
]

test.each(INTERRUPTIONS)('continues after an interruption %s request %d', async (when, nth) => {
  const payroll = await prepare()
  const before = await receivedBy()
  const { fetch, state } = interruptAt(nth, when)
  await expect(requestOf(payroll, fetch).then(runBatch)).rejects.toThrow()
  expect(state.isCut).toBe(true)
  expect(await runBatch(await requestOf(payroll))).toEqual({ paid: 3, payouts: 3 })
  await expectPaidOnce(payroll, before)
})

test.each([1, 2, 3, 4, 5])(
  'replaces seals and a delegation, and merges, once each after request %d is cut',
  async (nth) => {
    const payroll = await prepareDifferently()
    const before = await receivedBy()
    const { fetch, state } = interruptAt(nth, 'after')
    await expect(requestOf(payroll, fetch).then(runBatch)).rejects.toThrow()
    expect(state.isCut).toBe(true)
    expect(await runBatch(await requestOf(payroll))).toEqual({ paid: 3, payouts: 3 })
    await expectPaidOnce(payroll, before, [1, 2])
    // The short delegation was not sent through the service.
    const calls = ['merge', 'revoke_spender', 'revoke_spender', 'revoke_spender', 'set_spender', 'set_spender']
    expect(await callsOf(payroll)).toEqual(calls)
  },
)

test('says that a call has not been applied which the service only claims', async () => {
  const payroll = await prepare()
  const claiming = async (request: Request): Promise<Response> => {
    if (request.method === 'POST' && request.url.endsWith('/calls')) {
      return Response.json({ hash: 'ab'.repeat(32), status: 'SUCCESS' })
    }
    return await call(request)
  }
  await expect(requestOf(payroll, claiming).then(runBatch)).rejects.toMatchObject({ code: 'not-applied' })
})
