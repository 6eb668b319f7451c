import { DrizzleQueryError } from 'drizzle-orm'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type Handler, type ResourceOptions, resource } from '#lib/api/resource.ts'
import { ignoreBody, readJson, readQuery } from '#lib/http/body.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { FIELDS, REQUIRED_FIELDS } from '#lib/refusal/fields.ts'
import { REFUSAL_CODES, REFUSALS, Refusal, statusOf } from '#lib/refusal/refusal.ts'
import { plainText } from '#lib/text/plain-text.ts'
import { captureLog } from '../support/console.ts'

const SECRET = 'SBHUNTER2HUNTER2'
const BUG = { status: 500, body: { error: 'internal error', code: 'internal' } }
let logged: string[]
beforeEach(() => {
  logged = captureLog()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  // A module may have read the stubbed environment, so files that run later in this process must import it again.
  vi.resetModules()
})

const url = 'http://localhost:3000/api/things'
const post = (body: BodyInit | null, type: string | null = 'application/json') =>
  new Request(url, { method: 'POST', body, headers: type === null ? {} : { 'content-type': type } })
const answer = async (handler: Handler<unknown>, options?: ResourceOptions) => {
  const response = await resource({ POST: handler }, options).POST(post(null), {})
  return { status: response.status, headers: response.headers, body: await response.json() }
}
const throwing = (thrown: unknown, options?: ResourceOptions) =>
  answer(async () => {
    throw thrown
  }, options)
const read = async (request: Request, schema: z.ZodType = z.unknown()) => {
  const response = await resource({ POST: async (sent) => ({ read: await readJson(sent, schema) }) }).POST(request, {})
  return { status: response.status, body: (await response.json()) as { read?: unknown; error?: string } }
}

test('closes its connections once the process has been told to end', async () => {
  const state = perProcess('ending', () => ({ hasBegun: false }))
  expect((await answer(async () => ({}))).headers.get('connection')).toBeNull()
  state.hasBegun = true
  const { headers } = await answer(async () => ({}))
  state.hasBegun = false
  expect(headers.get('connection')).toBe('close')
})

describe('results of a handler', () => {
  test('sends a value as the JSON body of a 200', async () => {
    expect(await answer(async () => ({ ok: true }))).toMatchObject({ status: 200, body: { ok: true } })
  })

  test('sends a Response unchanged', async () => {
    const response = await answer(async () => Response.json({ a: 1 }, { status: 503, headers: { 'X-Own': 'kept' } }))
    expect(response).toMatchObject({ status: 503, body: { a: 1 } })
    expect(response.headers.get('x-own')).toBe('kept')
  })

  test.each([{ fee: 1n }, undefined])('treats a value that JSON cannot encode as a bug', async (value) => {
    expect(await answer(async () => value)).toMatchObject(BUG)
  })
})

describe('a deprecated method', () => {
  const deprecations = { POST: { since: new Date('2027-01-01T00:00:00Z'), sunset: new Date('2027-07-01T00:00:00Z') } }

  test.each<[string, Handler<unknown>]>([
    ['a response', async () => ({ ok: true })],
    [
      'a refusal',
      async () => {
        throw new Refusal('batch-locked')
      },
    ],
  ])('announces its end in the headers of %s', async (_, handler) => {
    const { headers } = await answer(handler, { deprecations })
    expect([headers.get('deprecation'), headers.get('sunset'), headers.get('link')]).toEqual([
      '@1798761600',
      'Thu, 01 Jul 2027 00:00:00 GMT',
      '</docs/guides/releases>; rel="deprecation"; type="text/html"',
    ])
  })

  test('leaves the other methods of its path as they are', async () => {
    const response = await resource({ GET: async () => ({}), POST: async () => ({}) }, { deprecations }).GET(
      new Request(url),
      {},
    )
    expect(response.headers.has('deprecation')).toBe(false)
  })
})

describe('refusals', () => {
  test.each(REFUSAL_CODES)('sends %s with its status and message only', async (code) => {
    const { status, body, headers } = await throwing(new Refusal(code, `because ${code}`, { cause: SECRET }))
    expect(status).toBe(statusOf(code))
    expect(body).toEqual({ error: `because ${code}`, code })
    expect(headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
    expect(headers.get('retry-after')).toBe(status === 429 || status === 503 ? '5' : null)
  })

  test('maps every code to one status', () => {
    const listed = Object.values(REFUSALS).flatMap((codes) => Object.keys(codes))
    expect(new Set(REFUSAL_CODES).size).toBe(listed.length + FIELDS.length + REQUIRED_FIELDS.length)
    for (const code of REFUSAL_CODES) expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/)
  })

  test('sends details next to the code, and bad fields as a list', async () => {
    const fields = [{ path: 'name', message: 'name required' }]
    const refused = await throwing(new Refusal('job-running', 'busy', { details: { jobId: '7' }, fields }))
    expect(refused.body).toEqual({ error: 'busy', code: 'job-running', jobId: '7', fields })
  })

  test('sends retryAfter as Retry-After, in whole seconds', async () => {
    for (const code of ['too-soon', 'unavailable'] as const) {
      const { headers } = await throwing(new Refusal(code, 'later', { retryAfter: 41.2 }))
      expect(headers.get('retry-after')).toBe('42')
    }
  })

  test('logs the cause, and sends only the message', async () => {
    await throwing(new Refusal('unavailable', 'away', { cause: new Error('connection refused') }))
    expect(logged.join('\n')).toContain('connection refused')
  })

  test('logs a refusal in one line, with its reason and no stack', async () => {
    await throwing(new Refusal('unauthenticated', 'invalid session token', { cause: new TypeError('wrong issuer') }))
    const [line = '', ...others] = logged.filter((each) => JSON.parse(each).event === 'refusal')
    expect(others).toEqual([])
    const reason = 'TypeError: wrong issuer'
    expect(JSON.parse(line)).toMatchObject({ level: 'info', refusal: 'invalid session token', reason })
  })
})

describe('bugs', () => {
  const bugs = [new TypeError(`cannot read ${SECRET}`), SECRET, { code: -32602, message: SECRET }, undefined, null]
  test.each(bugs)('sends a fixed 500 for %s, and logs it', async (thrown) => {
    const { headers, ...rest } = await throwing(thrown)
    expect(rest).toEqual(BUG)
    expect(JSON.stringify([...headers])).not.toContain(SECRET)
    expect(logged.some((line) => JSON.parse(line).event === 'failure')).toBe(true)
  })

  test('treats a handler that throws synchronously as a bug', async () => {
    const handler: Handler<unknown> = () => {
      throw new Error('at once')
    }
    expect(await answer(handler)).toMatchObject(BUG)
  })

  test('sends 503 for a query that did not reach the database', async () => {
    const { status, headers } = await throwing(
      new DrizzleQueryError('select 1', [], new Error('Connection terminated')),
    )
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
  })

  test('treats a query that the database rejected as a bug', async () => {
    const refused = Object.assign(new Error('relation "x" does not exist'), { code: '42P01', severity: 'ERROR' })
    expect((await throwing(new DrizzleQueryError('select 1', [], refused))).status).toBe(500)
  })
})

describe('the failure option', () => {
  const options = { failure: 'transfer failed' }

  test.each(REFUSAL_CODES)('%s', async (code) => {
    const { status, body, headers } = await throwing(new Refusal(code, `because ${code}`), options)
    const hidden = statusOf(code) === 500 || statusOf(code) === 503
    expect(status).toBe(hidden ? 500 : statusOf(code))
    expect(body).toEqual({ error: hidden ? 'transfer failed' : `because ${code}`, code })
    if (hidden) expect(headers.get('retry-after')).toBeNull()
  })

  test('covers bugs and unreachable databases', async () => {
    for (const thrown of [new Error(SECRET), new DrizzleQueryError('select 1', [], new Error('gone')), SECRET]) {
      expect(await throwing(thrown, options)).toMatchObject({ status: 500, body: { error: 'transfer failed' } })
    }
  })
})

describe('unknown methods and paths', () => {
  const handlers = resource({ GET: async () => ({}), PATCH: async () => ({}) })

  test.each(['POST', 'PUT', 'DELETE'] as const)(
    'responds to %s with 404 and Allow, and omits the query',
    async (method) => {
      expect((await resource({})[method](new Request(url, { method }), {})).headers.get('allow')).toBeNull()
      const request = new Request(`http://localhost:3000/api/contractors/7?token=${SECRET}`, { method })
      const response = await handlers[method](request, {})
      expect(response.status).toBe(404)
      expect(response.headers.get('allow')).toBe('GET, PATCH, OPTIONS')
      expect(await response.json()).toEqual({
        statusCode: 404,
        error: 'Not Found',
        message: `Route ${method}:/contractors/7 not found`,
      })
    },
  )

  test.each([
    ['http://localhost:3000/api', '/'],
    ['http://localhost:3000/api/', '/'],
    ['http://localhost:3000/apiary', '/apiary'],
    ['http://localhost:3000/api/api/x', '/api/x'],
  ])('names %s as %s in the message', async (address, path) => {
    const response = await resource({}).GET(new Request(address), {})
    expect(((await response.json()) as { message: string }).message).toBe(`Route GET:${path} not found`)
  })

  test('responds to a preflight', async () => {
    const response = await handlers.OPTIONS(new Request(url, { method: 'OPTIONS' }), {})
    expect(response.status).toBe(204)
    expect(await response.text()).toBe('')
    expect(Object.fromEntries(response.headers)).toMatchObject({
      allow: 'GET, PATCH, OPTIONS',
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, PATCH, OPTIONS',
      'access-control-allow-headers': 'authorization, content-type',
    })
  })

  test.each([
    ['of a wallet', 'authorization,content-type,x-client-name,x-client-version'],
    ['of tracing and error reporters', 'traceparent, tracestate, baggage, sentry-trace, x-datadog-trace-id'],
    ['of caches', 'cache-control,if-none-match,pragma'],
  ])('allows a page to send the headers %s', async (_, requested) => {
    const headers = { origin: 'https://wallet.example', 'access-control-request-headers': requested }
    const response = await handlers.OPTIONS(new Request(url, { method: 'OPTIONS', headers }), {})
    expect(response.headers.get('access-control-allow-headers')).toBe(requested)
  })

  test('echoes no list of headers that no browser sends', async () => {
    const headers = { 'access-control-request-headers': 'x-a; path=/, "x-b"' }
    const response = await handlers.OPTIONS(new Request(url, { method: 'OPTIONS', headers }), {})
    expect(response.headers.get('access-control-allow-headers')).toBe('authorization, content-type')
  })
})

describe('CORS', () => {
  test('lets every origin read every response, errors included', async () => {
    const answers = [
      await answer(async () => ({})),
      await throwing(new Refusal('unauthenticated', 'no')),
      await throwing(new Error('bug')),
    ]
    answers.push({ ...answers[0], ...(await resource({}).GET(new Request(url), {})) } as (typeof answers)[0])
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-expose-headers')).toBe(
        'Link, Retry-After, WWW-Authenticate, X-Request-Id, X-Total-Count, Idempotency-Replayed, Deprecation, Sunset',
      )
      expect(headers.get('access-control-allow-credentials')).toBeNull()
    }
  })

  /** The handlers under a reloaded configuration. */
  const under = async (origins: string | undefined, options?: ResourceOptions) => {
    vi.resetModules()
    vi.stubEnv('CORS_ORIGINS', origins)
    const handlers = (await import('#lib/api/resource.ts')).resource(
      {
        GET: async () => Response.json({}, { headers: { Vary: 'Accept' } }),
        POST: async () => {
          throw new Error('bug')
        },
      },
      options,
    )
    return async (method: 'GET' | 'POST' | 'PUT' | 'OPTIONS', origin?: string) => {
      const { headers } = await handlers[method](new Request(url, { method, headers: origin ? { origin } : {} }), {})
      return { allowed: headers.get('access-control-allow-origin'), vary: headers.get('vary'), headers }
    }
  }
  const [APP, OTHER] = ['https://app.example', 'https://other.example:8443']
  const strangers = [
    ...['https://evil.example', 'http://app.example', 'https://app.example:8443', 'https://other.example', 'null'],
    ...['https://app.example.evil.example', 'https://evil.example/https://app.example', `${APP}, ${OTHER}`, '*'],
  ]

  test.each([
    ['unset', undefined, [undefined, APP, ...strangers], []],
    ['empty', '', [undefined, APP, ...strangers], []],
    ['one origin', APP, [APP], [undefined, OTHER, ...strangers]],
    ['several origins', `${APP}, ${OTHER}`, [APP, OTHER], [undefined, ...strangers]],
  ] as const)('lets pages read responses according to CORS_ORIGINS %s', async (_, origins, readers, others) => {
    const ask = await under(origins)
    for (const method of ['GET', 'POST', 'PUT', 'OPTIONS'] as const) {
      const own = method === 'GET' ? ['Accept'] : []
      const vary = (origins ? [...own, 'Origin'] : own).join(', ') || null
      for (const origin of readers) {
        expect(await ask(method, origin)).toMatchObject({ allowed: origins ? origin : '*', vary })
      }
      for (const origin of others) expect(await ask(method, origin)).toMatchObject({ allowed: null, vary })
    }
  })

  test('lets every origin read a route that a standard requires to be open, even with CORS_ORIGINS set', async () => {
    const ask = await under(APP, { readers: 'everybody' })
    for (const method of ['GET', 'POST', 'PUT', 'OPTIONS'] as const) {
      const vary = method === 'GET' ? 'Accept' : null
      expect(await ask(method, 'https://evil.example')).toMatchObject({ allowed: '*', vary })
    }
  })

  test('lets every origin read which variable prevented the start', async () => {
    vi.resetModules()
    vi.stubEnv('SESSION_SECRET', 'short')
    const { resource: unconfigured } = await import('#lib/api/resource.ts')
    const response = await unconfigured({ GET: async () => ({}) }).GET(new Request(url), {})
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
  })

  test.each([undefined, '', APP])(
    'lets no other origin read a route for the service’s own pages, with CORS_ORIGINS %s',
    async (origins) => {
      const ask = await under(origins, { readers: 'ourselves' })
      for (const method of ['GET', 'POST', 'PUT', 'OPTIONS'] as const) {
        for (const origin of [undefined, APP, 'https://evil.example']) {
          const { headers } = await ask(method, origin)
          expect([...headers.keys()].filter((name) => /allow-origin|allow-credentials|expose/.test(name))).toEqual([])
        }
      }
    },
  )
})

describe('bodies', () => {
  const LIMIT = 256 * 1024
  const letters = (size: number) => JSON.stringify('x'.repeat(size - 2))

  test.each<[string | null, string | null, unknown]>([
    [null, null, {}],
    ['', 'application/json', {}],
    ['', 'image/png', {}],
    ['{"a":1}', 'Application/JSON ; charset=utf-8', { a: 1 }],
    ...['{"a":1}', 'null', '[1]', '"1–10"'].map((text): [string, string, unknown] => [
      text,
      'application/json',
      JSON.parse(text),
    ]),
    ['\ufeff{}', 'application/json', {}],
  ])('reads %j of type %s as %j', async (body, type, expected) => {
    expect(await read(post(body, type))).toEqual({ status: 200, body: { read: expected } })
  })

  test.each([
    ['cut off', '{"a":'],
    ['two values', '{}{}'],
    ['blanks alone', '  '],
    ['not JSON', SECRET],
    ['not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['UTF-16', Uint8Array.of(0xff, 0xfe, 0x7b, 0, 0x7d, 0)],
  ])('responds 400 to %s', async (_, body) => {
    const error = 'the body is not JSON in UTF-8'
    expect(await read(post(body))).toEqual({ status: 400, body: { error, code: 'body-invalid' } })
  })

  const others = ['text/plain', 'application/x-www-form-urlencoded', 'application/json-patch', 'application/jsonx']
  test.each([...others, '', null])('sends 415 for content type %s and any body', async (type) => {
    const bytes = new TextEncoder().encode('{"a":1}')
    expect((await read(post(bytes, type))).status).toBe(415)
  })

  test('reads 256 KiB, and sends 413 for one byte more', async () => {
    const most = await read(post(letters(LIMIT)))
    expect([most.status, String(most.body.read).length]).toEqual([200, LIMIT - 2])
    expect(await read(post(letters(LIMIT + 1)))).toEqual({
      status: 413,
      body: { error: 'the body is larger than 256 KiB', code: 'too-large' },
    })
    expect((await read(post(letters(LIMIT + 1), 'text/plain'))).status).toBe(413)
  })

  test('drains the rest of a body over the limit, up to a bound', async () => {
    let taken = 0
    const cancel = vi.fn()
    const endless = new ReadableStream({
      pull: (controller) => {
        taken += 1
        controller.enqueue(new Uint8Array(64 * 1024).fill(0x20))
      },
      cancel,
    })
    const request = new Request(url, { method: 'POST', body: endless, duplex: 'half' } as RequestInit)
    expect((await read(request)).status).toBe(413)
    await expect.poll(() => cancel).toHaveBeenCalled()
    expect(taken).toBeLessThanOrEqual(5 + (64 * 1024 * 1024 + LIMIT) / (64 * 1024))
  })

  test('refuses a large body for an operation without a body', async () => {
    const { POST } = resource({ POST: async (request) => ({ read: await ignoreBody(request) }) })
    expect((await POST(post(letters(LIMIT + 1), 'image/png'), {})).status).toBe(413)
    expect((await POST(post(letters(LIMIT), 'image/png'), {})).status).toBe(200)
    expect((await POST(post(null), {})).status).toBe(200)
  })

  test('refuses deep nesting like any other malformed body', async () => {
    const deep = '['.repeat(LIMIT / 2) + ']'.repeat(LIMIT / 2)
    expect((await read(post(deep), z.object({ name: z.string() }))).status).toBe(400)
  })

  test('treats prototype keys as unknown fields', async () => {
    const schema = z.object({ name: z.string().optional() })
    const sent = '{"__proto__":{"name":"x"},"constructor":{"prototype":{"name":"x"}}}'
    expect((await read(post(sent), schema)).body).toEqual({ read: {} })
    expect(({} as { name?: string }).name).toBeUndefined()
  })

  test('sends body-incomplete for a body that ends early', async () => {
    const broken = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"a":')),
      pull: () => Promise.reject(new Error('aborted')),
    })
    const { status, body } = await read(
      new Request(url, { method: 'POST', body: broken, duplex: 'half' } as RequestInit),
    )
    expect([status, body]).toEqual([400, { error: 'the body ended early', code: 'body-incomplete' }])
    expect(logged.map((line) => JSON.parse(line).level)).toEqual(['info', 'info'])
  })

  test('treats a body that was read before as a bug', async () => {
    const { POST } = resource({
      POST: async (request) => {
        await request.text()
        return await readJson(request, z.unknown())
      },
    })
    expect((await POST(post('{}'), {})).status).toBe(500)
  })
})

describe('bad fields of a body', () => {
  const amounts = z.array(z.int().min(1, 'must be positive'))
  const schema = z.object({
    to: z.string().max(3, 'too long').optional(),
    signedXDR: z.string('required').optional(),
    amounts: amounts.optional(),
    rate: z.object({ amount: z.string('not a decimal') }).optional(),
    status: z.enum(['paid', 'failed']).optional(),
    other: z.number().optional(),
    deep: z.array(z.object({ name: z.string() })).optional(),
    name: plainText(20).optional(),
    orgName: z.string().max(3, 'is not required').optional(),
  })

  test.each<[unknown, string, string]>([
    [{ to: 'abcd' }, 'to too long', 'to-invalid'],
    [{ signedXDR: 7 }, 'signedXDR required', 'signed-xdr-invalid'],
    [{ name: ' ' }, 'name required', 'name-required'],
    [{ name: 7 }, 'name must be a string', 'name-invalid'],
    [{ orgName: 'must be required' }, 'orgName is not required', 'org-name-invalid'],
    [{ amounts: [1, 0] }, 'amounts.1 must be positive', 'amounts-invalid'],
    [{ rate: { amount: 1 } }, 'rate.amount not a decimal', 'amount-invalid'],
    [{ rate: {} }, 'rate.amount not a decimal', 'amount-required'],
    [{ deep: [{}] }, 'deep.0.name required', 'name-required'],
    [{ to: 7 }, 'to must be a string', 'to-invalid'],
    [{ status: 'late' }, 'status must be paid or failed', 'status-invalid'],
    [{ other: 'x' }, 'other must be a number', 'body-invalid'],
    [null, 'the body must be a JSON object', 'body-invalid'],
    [[], 'the body must be a JSON object', 'body-invalid'],
  ])('%j: %s', async (sent, error, code) => {
    expect(await read(post(JSON.stringify(sent)), schema)).toEqual({ status: 400, body: { error, code } })
  })

  test.each([
    [100, undefined],
    [101, 1],
    [5_000, 4_900],
  ])('lists the first hundred of %i bad fields, and counts the others', async (bad, fieldsOmitted) => {
    const { body } = await read(post(JSON.stringify({ deep: Array(bad).fill({}) })), schema)
    expect(body).toMatchObject({ fields: { length: 100 } })
    expect((body as { fieldsOmitted?: number }).fieldsOmitted).toBe(fieldsOmitted)
  })

  test('lists every bad field once', async () => {
    const { status, body } = await read(post(JSON.stringify({ to: 'abcd', amounts: [0, 1.5], rate: 7 })), schema)
    expect(status).toBe(400)
    expect(body).toEqual({
      error: 'to too long',
      code: 'to-invalid',
      fields: [
        { path: 'to', message: 'to too long' },
        { path: 'amounts.0', message: 'amounts.0 must be positive' },
        { path: 'amounts.1', message: 'amounts.1 must be a whole number' },
        { path: 'rate', message: 'rate must be an object' },
      ],
    })
  })
})

describe('queries', () => {
  const schema = z.object({ status: z.enum(['paid'], 'not a status').optional(), limit: z.coerce.number().optional() })
  const ask = (query: string) => readQuery(new Request(`${url}${query}`), schema)

  test('takes the first of a repeated parameter', () => {
    expect(ask('?limit=3&limit=4&other=1')).toEqual({ limit: 3 })
  })

  test('treats a parameter without a value as absent', () => {
    expect(ask('?status=&limit=')).toEqual({})
  })

  test('ignores names of the prototype', () => {
    expect(ask('?__proto__=x&constructor=y&toString=z')).toEqual({})
  })

  test('names the parameter with a bad value', () => {
    expect(() => ask('?status=late')).toThrowError(new Refusal('status-invalid', 'status not a status'))
  })
})

describe('the log', () => {
  test('logs one line per request: method, path, status and duration', async () => {
    await resource({ POST: async () => ({}) }).POST(post('{}'), {})
    expect(logged).toHaveLength(1)
    expect(JSON.parse(logged[0] ?? '')).toEqual({
      time: expect.any(String),
      level: 'info',
      event: 'request',
      method: 'POST',
      path: '/api/things',
      status: 200,
      ms: expect.any(Number),
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  test.each([
    ['a.b_c-7', true],
    ['x'.repeat(64), true],
    ['x'.repeat(65), false],
    ['a b', false],
    ['', false],
  ])('accepts the request ID %j', async (requestId, isAccepted) => {
    const headers = { 'x-request-id': requestId }
    const handlers = resource({ POST: () => Promise.reject(new Error('bug')) })
    for (const method of ['POST', 'GET', 'OPTIONS'] as const) {
      const answer = await handlers[method](new Request(url, { method, headers }), {})
      const id = answer.headers.get('x-request-id') ?? ''
      if (isAccepted) expect(id).toBe(requestId)
      else expect(id).toMatch(/^[0-9a-f-]{36}$/)
    }
    const ids = logged.map((line) => JSON.parse(line).requestId)
    expect(ids).toHaveLength(3)
    expect(ids[0]).toBe(ids[1])
    expect(ids.includes(requestId)).toBe(isAccepted)
  })

  test('logs no body, query, token or header', async () => {
    const handlers = resource({
      POST: async (request) => {
        await readJson(request, z.object({ a: z.string().max(1), b: z.string() }))
      },
    })
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${SECRET}`, 'x-own': SECRET }
    for (const body of [`{"a":"${SECRET}","b":"${SECRET}"}`, `${SECRET}{`, `{"a":"x","b":"${SECRET}"}`]) {
      await handlers.POST(new Request(`${url}?token=${SECRET}`, { method: 'POST', body, headers }), {})
      await handlers.PUT(new Request(`${url}?token=${SECRET}`, { method: 'PUT', body, headers }), {})
    }
    expect(logged.length).toBeGreaterThanOrEqual(6)
    expect(logged.join('\n')).not.toContain(SECRET)
  })

  test('logs names, ids and hashes of a path, and hides every other part', async () => {
    const id = '0198c0de-7a7b-7000-8000-0123456789ab'
    const hash = 'ab'.repeat(32)
    const paths = {
      [`/api/invites/${SECRET}/accept`]: '/api/invites/…/accept',
      [`/api/batches/${id}/status`]: `/api/batches/${id}/status`,
      [`/api/x/${hash}`]: `/api/x/${hash}`,
      [`/api/${'a'.repeat(65)}`]: '/api/…',
    }
    const { GET } = resource({ GET: () => Promise.reject(new Error('bug')) })
    for (const path of Object.keys(paths)) await GET(new Request(`http://localhost:3000${path}`), {})
    const shown = logged.map((line) => JSON.parse(line)).filter(({ event }) => event === 'request')
    expect(shown.map(({ path }) => path)).toEqual(Object.values(paths))
    expect(logged.join('\n')).not.toContain(SECRET)
  })
})
