import { setImmediate } from 'node:timers/promises'
import { Keypair } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import * as contractors from '#app/api/contractors/route.ts'
import * as me from '#app/api/me/route.ts'
import { shareSlots } from '#lib/http/fairness.ts'
import { shareService } from '../support/shared-service.ts'
import type { TestService } from '../support/test-service.ts'

let service: TestService

beforeAll(async () => {
  service = await shareService()
})
afterAll(() => service.close())
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const newSession = () => service.wallet(Keypair.random().publicKey())
const request = (session: string, init: RequestInit = {}) =>
  new Request('http://localhost:3000/api/me', { ...init, headers: { Authorization: `Bearer ${session}` } })
const getMe = (session: string) => me.GET(request(session), undefined)

test('allows a user bursts of 500 requests and 50 more each second, and does not affect another user', async () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(1e12)
  const session = await newSession()
  for (let count = 0; count < 500; count += 1) {
    // A body over the limit is refused before the database is read, and is counted like any other request.
    const patch = request(session, { method: 'PATCH', body: 'x'.repeat(300_000) })
    expect((await me.PATCH(patch, undefined)).status).toBe(413)
  }
  const refused = await getMe(session)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toEqual({ error: 'too many requests from this user', code: 'rate-limited' })
  expect((await getMe(await newSession())).status).toBe(200)
  now.mockReturnValue(1e12 + 1_000)
  const answers: number[] = []
  for (let count = 0; count < 60; count += 1) answers.push((await getMe(session)).status)
  expect(answers.filter((status) => status === 200)).toHaveLength(50)
})

/** A request that stays in progress until `end` is called. */
function openRequest(session: string): { answer: Promise<Response>; end(): void } {
  let end = () => {}
  const body = new ReadableStream({
    start: (controller) => {
      end = () => controller.close()
    },
  })
  const headers = { Authorization: `Bearer ${session}`, 'Content-Type': 'application/json' }
  const init = { method: 'POST', body, headers, duplex: 'half' } as RequestInit
  return {
    answer: contractors.POST(new Request('http://localhost:3000/api/contractors', init), undefined),
    end: () => end(),
  }
}

test('runs four requests of a user at a time and makes the fifth wait, but not another user’s', async () => {
  const session = await newSession()
  expect((await getMe(session)).status).toBe(200)
  const open = Array.from({ length: 4 }, () => openRequest(session))
  let isAnswered = false
  const fifth = getMe(session).then((response) => {
    isAnswered = true
    return response.status
  })
  expect((await getMe(await newSession())).status).toBe(200)
  for (let turn = 0; turn < 100; turn += 1) await setImmediate()
  expect(isAnswered).toBe(false)
  open[0]?.end()
  expect(await fifth).toBe(200)
  for (const { end } of open.slice(1)) end()
  // A missing body is treated as an empty one, which lacks the name.
  for (const { answer } of open) expect((await answer).status).toBe(400)
})

test('refuses a request that has waited ten seconds for a slot', async () => {
  vi.useFakeTimers()
  const blocker = Promise.withResolvers<void>()
  const open = Array.from({ length: 4 }, () => shareSlots('greedy', () => blocker.promise))
  const refused = shareSlots('greedy', async () => 'never').catch((error) => [error.code, error.retryAfter])
  await vi.advanceTimersByTimeAsync(9_999)
  expect(await shareSlots('modest', async () => 'served')).toBe('served')
  await vi.advanceTimersByTimeAsync(1)
  expect(await refused).toEqual(['rate-limited', 1])
  blocker.resolve()
  await Promise.all(open)
})
