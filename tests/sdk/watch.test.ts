import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import { type PayrollEvent, type WatchOptions, watch } from '#lib/sdk/watch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const eventOf = (id: string): PayrollEvent => ({ id, type: 'payout.paid', createdAt: '2026-03-02T09:00:00Z', data: {} })

type Reply = readonly string[] | Response | Error | 'silence'

/** Watches a service that replies in this order, with the ids of events, and then with none. */
function openWatch(replies: readonly Reply[], options: WatchOptions = {}) {
  const queries: Record<string, string>[] = []
  const fetch = async (request: Request): Promise<Response> => {
    queries.push(Object.fromEntries(new URL(request.url).searchParams))
    const reply = replies[queries.length - 1] ?? []
    if (reply instanceof Error) throw reply
    if (reply === 'silence') {
      await new Promise((_, reject) => {
        request.signal.addEventListener('abort', () => reject(request.signal.reason))
      })
    }
    if (reply instanceof Response) return reply.clone()
    // A service without events responds later.
    if (reply.length === 0) await new Promise((resolve) => setTimeout(resolve, 25_000))
    return Response.json({ events: Array.from(reply, (id) => eventOf(id)) })
  }
  return { queries, events: watch(createPayrollClient({ baseUrl: 'http://payroll.test/api', fetch }), options) }
}

async function takeIds(events: AsyncGenerator<PayrollEvent>, count: number): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < count) {
    const next = events.next()
    next.catch(() => undefined)
    await vi.advanceTimersByTimeAsync(600_000)
    const { value } = await next
    if (!value) break
    ids.push(value.id)
  }
  return ids
}

test('yields events in order, and asks for those after the last one', async () => {
  const from = new Date('2026-03-01T00:00:00Z')
  const { events, queries } = openWatch([['1-a', '2-b'], [], ['3-c']], {
    after: '0-z',
    from,
    types: ['payout.paid', 'payout.failed'],
  })
  expect(await takeIds(events, 3)).toEqual(['1-a', '2-b', '3-c'])
  const same = { wait: '25', from: from.toISOString(), type: 'payout.paid,payout.failed' }
  expect(queries).toEqual(['0-z', '2-b', '2-b'].map((after) => ({ ...same, after })))
})

test('begins with the oldest event, and goes on where it was after a restart', async () => {
  const first = openWatch([['1-a', '2-b']])
  expect(await takeIds(first.events, 1)).toEqual(['1-a'])
  await first.events.return()
  expect(first.queries).toEqual([{ wait: '25' }])
  const again = openWatch([['2-b']], { after: '1-a' })
  expect(await takeIds(again.events, 1)).toEqual(['2-b'])
  expect(again.queries).toEqual([{ wait: '25', after: '1-a' }])
})

test('asks again while the network or the service fails, for as long as that takes', async () => {
  const failures = Array.from({ length: 40 }, () => new TypeError('fetch failed'))
  const busy = Response.json({ error: 'too many requests wait', code: 'busy' }, { status: 503 })
  const { events, queries } = openWatch([['1-a'], ...failures, busy, ['2-b']])
  expect(await takeIds(events, 2)).toEqual(['1-a', '2-b'])
  expect(new Set(queries.slice(1).map(({ after }) => after))).toEqual(new Set(['1-a']))
  expect(queries).toHaveLength(43)
})

test('asks again if a connection was lost unnoticed', async () => {
  vi.useRealTimers()
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
    const lost = new AbortController()
    setTimeout(() => lost.abort(new DOMException('too late', 'TimeoutError')), 20)
    return lost.signal
  })
  const { events, queries } = openWatch(['silence', ['1-a']])
  expect((await events.next()).value?.id).toBe('1-a')
  expect(queries).toHaveLength(2)
  vi.restoreAllMocks()
})

test('ends with the reason of its signal', async () => {
  vi.useRealTimers()
  const leaving = new AbortController()
  const { events } = openWatch(['silence'], { signal: leaving.signal })
  const next = events.next()
  leaving.abort(new Error('left'))
  await expect(next).rejects.toThrow('left')
})

test('throws if the service does not have the event', async () => {
  const gone = Response.json({ error: 'gone', code: 'events-gone', oldest: '7-a' }, { status: 410 })
  const { events } = openWatch([gone], { after: '1-a' })
  await expect(events.next()).rejects.toMatchObject({ code: 'events-gone', status: 410, details: { oldest: '7-a' } })
})
