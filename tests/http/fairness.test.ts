import { setImmediate } from 'node:timers/promises'
import { NextRequest } from 'next/server.js'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { resource } from '#lib/api/resource.ts'
import { readForm, readJson } from '#lib/http/body.ts'
import { takeTurn } from '#lib/http/fairness.ts'
import { answerPrepared, prepare } from '#lib/http/prepared.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { proxy } from '../../proxy.ts'

const post = (body: string, type = 'application/json') =>
  new Request('http://localhost:3000/api/things', { method: 'POST', body, headers: { 'Content-Type': type } })

/** The maximum growth of `count` within one turn of the event loop, until `all` are done. */
async function mostInATurn(all: Promise<unknown>, count: () => number): Promise<number> {
  let isDone = false
  all.finally(() => {
    isDone = true
  })
  let most = 0
  for (let before = count(); !isDone; before = count()) {
    await setImmediate()
    most = Math.max(most, count() - before)
  }
  return most
}

test.each<[string, (parsed: z.ZodType) => Promise<unknown>]>([
  ['JSON', (schema) => readJson(post('{"name":"Ada"}'), schema)],
  ['forms', (schema) => readForm(post('name=Ada', 'application/x-www-form-urlencoded'), schema)],
])('parses one body (%s) per turn of the event loop', async (_, read) => {
  let parsed = 0
  const schema = z.unknown().transform(() => {
    parsed += 1
  })
  const all = Promise.all(Array.from({ length: 50 }, () => read(schema)))
  expect(await mostInATurn(all, () => parsed)).toBe(1)
  expect(parsed).toBe(50)
})

test('starts one page per turn', async () => {
  let started = 0
  const ask = () => proxy(new NextRequest('http://localhost:3000/sign-in')).then(() => (started += 1))
  expect(await mostInATurn(Promise.all(Array.from({ length: 50 }, ask)), () => started)).toBe(1)
  expect(started).toBe(50)
})

test.each([400, 401, 404, 429] as const)('sends one refusal (%i) per turn', async (status) => {
  const codes = { 400: 'body-invalid', 401: 'bearer-invalid', 404: 'batch-not-found', 429: 'rate-limited' } as const
  const { GET } = resource({
    GET: async () => {
      throw new Refusal(codes[status], 'no')
    },
  })
  let answered = 0
  const ask = async () => {
    const response = await GET(new Request('http://localhost:3000/api/things'), {})
    answered += 1
    return response.status
  }
  const all = Promise.all(Array.from({ length: 50 }, ask))
  expect(await mostInATurn(all, () => answered)).toBe(1)
  expect(new Set(await all)).toEqual(new Set([status]))
})

test('sends one large response per turn', async () => {
  const large = prepare('x'.repeat(20_000), 'text/plain')
  let answered = 0
  const ask = async () => {
    const response = await answerPrepared(new Request('http://localhost:3000/api/things'), large)
    answered += 1
    return response.status
  }
  const all = Promise.all(Array.from({ length: 50 }, ask))
  expect(await mostInATurn(all, () => answered)).toBe(1)
  expect(new Set(await all)).toEqual(new Set([200]))
})

test('parses a body before pages and refusals that arrived earlier', async () => {
  const { GET } = resource({})
  const done: string[] = []
  const ask = (kind: string, request: Promise<unknown>) => request.then(() => done.push(kind))
  const others = Array.from({ length: 100 }, () => [
    ask('page', proxy(new NextRequest('http://localhost:3000/sign-in'))),
    ask('refusal', GET(new Request('http://localhost:3000/api/nowhere'), {})),
  ])
  await ask('body', readJson(post('{}'), z.unknown()))
  expect(done.length).toBeLessThan(50)
  await Promise.all(others.flat())
})

test('parses a small body with a session before earlier bodies without one and before large ones', async () => {
  const done: string[] = []
  const send = (kind: string, read: Promise<unknown>) => read.catch(() => undefined).then(() => done.push(kind))
  const form = () => readForm(post('name=Ada', 'application/x-www-form-urlencoded'), z.unknown())
  const others = Array.from({ length: 100 }, () => [
    send('form', form()),
    send('open', readJson(post('{}'), z.unknown(), { isOpen: true })),
    send('large', readJson(post(`"${'x'.repeat(20_000)}"`), z.unknown())),
  ])
  await send('small', readJson(post('{}'), z.unknown()))
  expect(done.length).toBeLessThan(50)
  await Promise.all(others.flat())
})

test('reads one chunk of all large bodies per turn', async () => {
  let read = 0
  const large = () =>
    new Request('http://localhost:3000/api/things', {
      method: 'POST',
      duplex: 'half',
      headers: { 'Content-Type': 'application/json' },
      // The stream must not be read ahead of the requests.
      body: new ReadableStream(
        {
          pull: (controller) => {
            read += 1
            controller.enqueue(new Uint8Array(66_000).fill(0x20))
          },
        },
        { highWaterMark: 0 },
      ),
    } as RequestInit)
  const refused = Promise.all(
    Array.from({ length: 20 }, () => readJson(large(), z.unknown()).catch(({ code }: Refusal) => code)),
  )
  await expect.poll(() => read).toBeGreaterThanOrEqual(20)
  expect(await mostInATurn(refused, () => read)).toBe(1)
  expect(new Set(await refused)).toEqual(new Set(['too-large']))
})

test('does not wait for a turn without a body', async () => {
  const waiting = takeTurn('large body')
  let isDone = false
  waiting.finally(() => {
    isDone = true
  })
  await readJson(new Request('http://localhost:3000/api/things', { method: 'POST' }), z.unknown())
  expect(isDone).toBe(false)
  await waiting
})

const MEBIBYTE = 1024 * 1024

/** A request that announces a body of this many bytes, and is complete, or is cut off after the test. */
function sent(size: number, { isWhole }: { isWhole: boolean }): Request {
  const body = new ReadableStream({
    start: (controller) => {
      for (let left = size; left > 0; left -= 50_000)
        controller.enqueue(new Uint8Array(Math.min(left, 50_000)).fill(0x20))
      if (isWhole) controller.close()
      else onTestFinished(() => controller.error(new Error('cut off')))
    },
  })
  const headers = { 'Content-Type': 'application/json' }
  return new Request('http://localhost:3000/api/things', {
    method: 'POST',
    body,
    headers,
    duplex: 'half',
  } as RequestInit)
}

test('refuses the oldest incomplete bodies beyond 64 MiB and reads a complete one', async () => {
  const size = MEBIBYTE / 4
  const refusedIndexes: number[] = []
  const halves = Array.from({ length: 300 }, (_, index) =>
    readJson(sent(size, { isWhole: false }), z.unknown()).catch((refused: Refusal) => {
      refusedIndexes.push(index)
      return [refused.code, refused.retryAfter]
    }),
  )
  const oldest = Array.from({ length: 300 - 256 }, (_, index) => index)
  await expect.poll(() => refusedIndexes).toEqual(oldest)
  expect(await Promise.all(halves.slice(0, oldest.length))).toEqual(oldest.map(() => ['busy', 1]))
  const request = sent(size, { isWhole: true })
  const whole = await readJson(request, z.unknown()).catch(({ code }: Refusal) => code)
  // It is white space: it was read to its end, and then parsed.
  expect(whole).toBe('body-invalid')
})
