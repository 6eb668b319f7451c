import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { isTransient, patiently, pause } from '#lib/sdk/patience.ts'
import { PayrollError } from '#lib/sdk/payroll-client.ts'
import { RunError } from '#lib/sdk/run-error.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'

const errorOf = (status: number, code: string, headers: Record<string, string> = {}) =>
  new PayrollError(new Response(null, { status, headers }), { code })

const PASSING: Record<string, unknown> = {
  'a network that fails in Node': new TypeError('fetch failed'),
  'a network that fails in Firefox': new TypeError('NetworkError when attempting to fetch resource.'),
  'a network that fails in Safari': new TypeError('Load failed'),
  'an RPC that does not respond': new LedgerError('unavailable', 'no response'),
  'a service that is busy': errorOf(503, 'busy'),
  'a proxy without its server': errorOf(502, 'unknown'),
}
const LASTING: Record<string, unknown> = {
  'a mistake in a program': new TypeError('undefined is not a function'),
  'a refusal': errorOf(409, 'payout-locked'),
  'an odd status': errorOf(404, 'unknown'),
  'a list that differs': new RunError('list-differs', 'differs'),
  'a rejection with text': 'busy',
}

test.each(Object.keys(PASSING))('repeats a request after %s', (name) => {
  expect(isTransient(PASSING[name])).toBe(true)
})
test.each(Object.keys(LASTING))('does not repeat a request after %s', (name) => {
  expect(isTransient(LASTING[name])).toBe(false)
})

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Fails with the errors, and then succeeds; records the times of the attempts, in ms. */
function failing(errors: readonly unknown[]) {
  const began = Date.now()
  const times: number[] = []
  const request = async () => {
    times.push(Date.now() - began)
    if (times.length <= errors.length) throw errors[times.length - 1]
    return 'done'
  }
  return { times, request }
}

test('pauses longer after each failure, and as long as the service asks', async () => {
  const busy = errorOf(503, 'busy', { 'retry-after': '5' })
  const lost = new TypeError('fetch failed')
  const { times, request } = failing([lost, lost, busy, lost])
  const result = patiently(request)
  await vi.runAllTimersAsync()
  expect(await result).toBe('done')
  expect(times).toEqual([0, 250, 750, 5_750, 7_750])
})

test('pauses for up to a minute if the service asks for it', async () => {
  const asking = (seconds: string) => errorOf(503, 'busy', { 'retry-after': seconds })
  const { times, request } = failing([asking('45'), asking('3600')])
  const result = patiently(request)
  await vi.runAllTimersAsync()
  expect(await result).toBe('done')
  expect(times).toEqual([0, 45_000, 105_000])
})

test('gives up after about a minute with the last error, and at once if the error lasts', async () => {
  const lost = new TypeError('fetch failed')
  const { times, request } = failing(Array.from({ length: 100 }, () => lost))
  const result = patiently(request).catch((error: unknown) => error)
  await vi.runAllTimersAsync()
  expect(await result).toBe(lost)
  expect(times.at(-1)).toBeGreaterThan(45_000)
  expect(times.at(-1)).toBeLessThan(90_000)

  const refused = failing([LASTING['a refusal']])
  await expect(patiently(refused.request)).rejects.toBe(LASTING['a refusal'])
  expect(refused.times).toEqual([0])
})

test('ends a pause with the reason of its signal', async () => {
  vi.useRealTimers()
  const leaving = new AbortController()
  const waiting = pause(60_000, leaving.signal)
  leaving.abort(new Error('left'))
  await expect(waiting).rejects.toThrow('left')
  await expect(patiently(async () => 1, { signal: leaving.signal })).rejects.toThrow('left')
})
