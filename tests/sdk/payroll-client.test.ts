import { expect, test } from 'vitest'
import { createPayrollClient, PayrollError, type PayrollErrorCode, take } from '#lib/sdk/payroll-client.ts'

const BASE = 'http://payroll.test/api'
const EXPIRED = { error: 'session expired', code: 'session-expired' }

/** A service that accepts one session, and a client that signs in again. */
function openClient({ accepts = 'new', signsIn = true } = {}) {
  const sent: string[] = []
  const state = { session: 'old', signIns: 0 }
  const client = createPayrollClient({
    baseUrl: BASE,
    session: () => state.session,
    ...(signsIn && {
      renew: async () => {
        state.signIns += 1
        await new Promise((resolve) => setTimeout(resolve, 5))
        state.session = 'new'
      },
    }),
    fetch: async (request) => {
      const session = request.headers.get('authorization')
      sent.push(`${session} ${await request.text()}`)
      return session === `Bearer ${accepts}` ? Response.json({ id: 'b' }) : Response.json(EXPIRED, { status: 401 })
    },
  })
  const create = () => take(client.POST('/batches', { body: { name: 'March' } }))
  return { create, sent, state }
}

test('signs in again when the session has expired, and repeats the request', async () => {
  const { create, sent } = openClient()
  expect(await create()).toEqual({ id: 'b' })
  expect(sent).toEqual(['Bearer old {"name":"March"}', 'Bearer new {"name":"March"}'])
})

test('sends an Idempotency-Key, also when it repeats the request', async () => {
  const keys: (string | null)[] = []
  let session = 'old'
  const client = createPayrollClient({
    baseUrl: BASE,
    session: () => session,
    renew: async () => {
      session = 'new'
    },
    fetch: async (request) => {
      keys.push(request.headers.get('idempotency-key'))
      return session === 'new' ? Response.json({ id: 'b' }) : Response.json(EXPIRED, { status: 401 })
    },
  })
  const params = { header: { 'Idempotency-Key': 'march' } }
  await client.POST('/batches', { params, body: { name: 'March', externalId: 'payroll/3' } })
  expect(keys).toEqual(['march', 'march'])
  // @ts-expect-error this operation takes no key
  await client.POST('/batches/{id}/ready', { params: { ...params, path: { id: 'b' } } })
})

test('signs in once for requests that expire together', async () => {
  const { create, state } = openClient()
  await Promise.all([create(), create(), create()])
  expect(state.signIns).toBe(1)
})

test('does not sign in again for a response that arrives after the session was renewed', async () => {
  const { create, state } = openClient()
  const first = create()
  state.session = 'new'
  await first
  expect(state.signIns).toBe(0)
})

test('reads no pause from a Retry-After that is a date', () => {
  const headers = { 'retry-after': 'Fri, 27 Nov 2026 10:00:00 GMT' }
  expect(new PayrollError(new Response(null, { status: 503, headers }), {}).retryAfter).toBeUndefined()
})

test('reports the error of a session that is refused although it is new', async () => {
  const { create, state } = openClient({ accepts: 'none' })
  await expect(create()).rejects.toMatchObject({ code: 'session-expired' })
  expect(state.signIns).toBe(1)
  await expect(openClient({ signsIn: false }).create()).rejects.toMatchObject({ code: 'session-expired', status: 401 })
})

test.each([
  [
    'no response',
    () => Promise.reject(new TypeError('fetch failed')),
    'network',
    0,
    /payroll\.test\/api does not respond/,
  ],
  [
    'the page of another address',
    async () =>
      new Response('<!doctype html>', { status: 404, headers: { 'content-type': 'text/html; charset=utf-8' } }),
    ...(['unknown', 404, /answered 404 with a page: is it the base address of the API/] as const),
  ],
  [
    'the page of an application that answers everything',
    async () => new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } }),
    ...(['unknown', 200, /answered 200 with a page/] as const),
  ],
] as const)('reports %s in words, as a PayrollError', async (_, fetch, code, status, message) => {
  const client = createPayrollClient({ baseUrl: BASE, fetch })
  const failed = client.GET('/me').catch((error: unknown) => error)
  expect(await failed).toBeInstanceOf(PayrollError)
  expect(await failed).toMatchObject({ code, status, message: expect.stringMatching(message) })
})

test('repeats a request whose response ends in the middle of its body', async () => {
  const broken = () =>
    new Response(
      new ReadableStream({
        start: (stream) => {
          stream.enqueue(new TextEncoder().encode('{ "id":'))
          stream.error(new TypeError('terminated'))
        },
      }),
    )
  const keys: (string | null)[] = []
  const fetch = async (request: Request) => {
    keys.push(request.headers.get('idempotency-key'))
    return keys.length === 1 ? broken() : Response.json({ id: 'b' })
  }
  const client = createPayrollClient({ baseUrl: BASE, fetch })
  expect(await take(client.POST('/batches', { body: { name: 'March' } }))).toEqual({ id: 'b' })
  expect(keys).toEqual([keys[0], keys[0]])
  keys.length = 0
  const ready = client.POST('/batches/{id}/ready', { params: { path: { id: 'b' } } })
  await expect(ready).rejects.toMatchObject({ code: 'network' })
})

test('throws what the signal of an aborted request has', async () => {
  const reason = new Error('the user has left')
  const client = createPayrollClient({ baseUrl: BASE, fetch: () => Promise.reject(reason) })
  await expect(client.GET('/me')).rejects.toBe(reason)
})

test('knows the codes of the service', () => {
  const codes: PayrollErrorCode[] = ['payout', 'query-unknown', 'network', 'unknown']
  // @ts-expect-error no operation has it
  codes.push('nonsense')
  expect(codes).toHaveLength(5)
})

test('sends a read again while the network or the service fails, and no request that could act twice', async () => {
  const failures: (() => Promise<Response>)[] = [
    () => Promise.reject(new TypeError('fetch failed')),
    async () => new Response('Bad Gateway', { status: 502 }),
    async () => Response.json({ error: 'busy', code: 'busy' }, { status: 503 }),
  ]
  let sent = 0
  const fetch = () => {
    sent += 1
    return failures[sent - 1]?.() ?? Promise.resolve(Response.json({ id: 'b' }))
  }
  const client = createPayrollClient({ baseUrl: BASE, fetch })
  expect(await take(client.GET('/me'))).toEqual({ id: 'b' })
  expect(sent).toBe(4)
  sent = 0
  const ready = client.POST('/batches/{id}/ready', { params: { path: { id: 'b' } } })
  await expect(ready).rejects.toMatchObject({ code: 'network' })
  expect(sent).toBe(1)
})

test('sends a request that creates records again, with the key that it made', async () => {
  const requests: [key: string | null, body: string][] = []
  const responses: (() => Promise<Response>)[] = [
    () => Promise.reject(new TypeError('fetch failed')),
    async () => Response.json({ error: 'in use', code: 'idempotency-key-in-use' }, { status: 409 }),
    async () => Response.json({ id: 'b' }),
    async () => Response.json({ error: 'name required', code: 'name-required' }, { status: 400 }),
  ]
  const fetch = async (request: Request) => {
    requests.push([request.headers.get('idempotency-key'), await request.text()])
    return await (responses[requests.length - 1]?.() ?? Response.json({}))
  }
  const client = createPayrollClient({ baseUrl: BASE, fetch })
  expect(await take(client.POST('/batches', { body: { name: 'March' } }))).toEqual({ id: 'b' })
  const key = requests[0]?.[0]
  expect(key).toMatch(/^[0-9a-f]{32}$/)
  expect(requests).toEqual(Array(3).fill([key, '{"name":"March"}']))
  await expect(client.POST('/batches', { body: { name: '' } })).rejects.toMatchObject({ code: 'name-required' })
  expect(requests).toHaveLength(4)
  expect(requests[3]?.[0]).not.toBe(key)
  const path = { id: 'c' }
  await client.POST('/contractors/{id}/invite', { params: { path } })
  expect(requests[4]?.[0]).toMatch(/^[0-9a-f]{32}$/)
  await client.PATCH('/contractors/{id}', { params: { path }, body: { name: 'Ann' } })
  expect(requests[5]?.[0]).toBeNull()
})
