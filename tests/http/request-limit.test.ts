import { Agent, request as ask, createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { OPERATIONS } from '#lib/api/interface.ts'
import { routes } from '#lib/api/routes.ts'
import { clientOf, watchClients } from '#lib/http/client-address.ts'
import { requireRequestLeft } from '#lib/http/request-limit.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { captureLog } from '../support/console.ts'

type Kind = Parameters<typeof requireRequestLeft>[1]

/** Makes requests of a kind until one is refused. */
async function exhaust(address: string, kind: Kind): Promise<{ headers: Headers; count: number; retryAfter: number }> {
  const headers = new Headers({ 'x-client-address': address })
  for (let count = 0; ; count += 1) {
    const error: unknown = await requireRequestLeft(headers, kind).catch((reason: unknown) => reason)
    if (error instanceof Refusal) return { headers, count, retryAfter: error.retryAfter ?? 0 }
  }
}

describe('a limit', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('allows 30 requests a second in bursts of up to 300, and says when to try again', async () => {
    expect(await exhaust('192.0.2.97', 'session')).toMatchObject({ count: 300, retryAfter: 1 })
    vi.advanceTimersByTime(1_000)
    expect(await exhaust('192.0.2.97', 'session')).toMatchObject({ count: 30 })
    vi.advanceTimersByTime(9_000)
    expect(await exhaust('192.0.2.97', 'session')).toMatchObject({ count: 300 })
  })

  test('of passwords leaves a client the sign-in page', async () => {
    const { headers } = await exhaust('192.0.2.99', 'password')
    await requireRequestLeft(headers, 'page')
  })

  test('of passwords that skip the wait is ten times lower', async () => {
    const { headers, count } = await exhaust('192.0.2.98', 'drawn-password')
    expect(count).toBe(30)
    await requireRequestLeft(headers, 'password')
  })
})

describe('an operation without a session', () => {
  const paths = [...new Set(OPERATIONS.filter(({ group }) => group === 'Sessions').map(({ path }) => path))]

  test.each(paths)('refuses %s to a client over its limit before doing anything else', async (path) => {
    const client = `192.0.2.${paths.indexOf(path) + 1}`
    const routesOfPath = routes(path, OPERATIONS)
    const method = OPERATIONS.find((operation) => operation.path === path)?.method ?? 'GET'
    await exhaust(client, 'session')
    const limited = new Request(`http://localhost:3000/api${path}`, {
      method,
      headers: { 'x-client-address': client },
    })
    const answer = await routesOfPath[method](limited, undefined)
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '1'])
    expect(await answer.json()).toEqual({ error: 'too many requests from this address', code: 'rate-limited' })
  })
})

describe('the address of a client', () => {
  let server: Server | undefined
  let stop: (() => void) | undefined
  afterEach(() => {
    vi.restoreAllMocks()
    stop?.()
    server?.close()
    server?.closeAllConnections()
  })

  /** The address that handlers see for a request with these headers. */
  async function seenWith(proxies: number, headers: Record<string, string>): Promise<string | undefined> {
    stop = watchClients(proxies)
    server = createServer((request, response) => {
      const seen = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
      response.end(clientOf(seen))
    })
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', () => resolve()))
    const { port } = server.address() as AddressInfo
    return await new Promise((resolve) => {
      ask({ port, host: '127.0.0.1', headers }, async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve(text)
      }).end()
    })
  }

  test.each<[string, number, Record<string, string>, string]>([
    ['without a proxy, the connection', 0, {}, '127.0.0.1'],
    ['without a proxy, not X-Forwarded-For', 0, { 'x-forwarded-for': '192.0.2.1' }, '127.0.0.1'],
    ['not the header that the service sets', 0, { 'x-client-address': '192.0.2.1' }, '127.0.0.1'],
    ['with one proxy, the client of the proxy', 1, { 'x-forwarded-for': '192.0.2.1' }, '192.0.2.1'],
    [
      'with one proxy, not an entry that the client sent',
      1,
      { 'x-forwarded-for': '203.0.113.9, 192.0.2.1' },
      '192.0.2.1',
    ],
    [
      'with two proxies, the client of the first',
      2,
      { 'x-forwarded-for': '203.0.113.9, 192.0.2.1, 10.0.0.1' },
      '192.0.2.1',
    ],
    ['with fewer entries than proxies, the connection', 2, { 'x-forwarded-for': '192.0.2.1' }, '127.0.0.1'],
    ['an IPv4 address mapped to IPv6', 1, { 'x-forwarded-for': '::ffff:192.0.2.1' }, '192.0.2.1'],
    ['the network of an IPv6 address', 1, { 'x-forwarded-for': '2001:DB8:1:2:3:4:5:6' }, '2001:db8:1:2'],
    ['an IPv4 address without its port', 1, { 'x-forwarded-for': '192.0.2.1:5678' }, '192.0.2.1'],
    ['an IPv6 address without its port', 1, { 'x-forwarded-for': '[2001:db8:1:2::5]:443' }, '2001:db8:1:2'],
    ['an IPv6 address without its brackets', 1, { 'x-forwarded-for': '[2001:db8:1:2::5]' }, '2001:db8:1:2'],
    ['the network of an abbreviated IPv6 address', 1, { 'x-forwarded-for': '2001:db8::1' }, '2001:db8:0:0'],
  ])('%s', async (_, proxies, headers, expected) => {
    expect(await seenWith(proxies, headers)).toBe(expected)
  })

  test('logs once that a proxy is not configured', async () => {
    const logged = captureLog()
    await seenWith(0, {})
    expect(logged).toEqual([])
    const { port } = Object(server?.address()) as AddressInfo
    const headers = { 'x-forwarded-for': '192.0.2.1' }
    for (let time = 0; time < 2; time += 1) await fetch(`http://127.0.0.1:${port}`, { headers })
    expect(logged).toEqual([expect.stringContaining('TRUST_PROXY is 0')])
  })

  test('finds no client for a request that no server has received', () => {
    expect(clientOf(new Headers())).toBeUndefined()
  })

  test.each<[string, Record<string, string>, string | undefined]>([
    ['/overview', { 'Content-Length': String(2 * 1024 * 1024) }, 'close'],
    ['/overview', { 'Transfer-Encoding': 'chunked' }, 'close'],
    ['/sign-in/password', { 'Content-Length': '100' }, 'keep-alive'],
    ['/overview', { 'Content-Length': '0' }, 'keep-alive'],
    ['/api/me', { 'Content-Length': String(2 * 1024 * 1024) }, 'keep-alive'],
    ['/api/me', { 'Transfer-Encoding': 'chunked' }, 'keep-alive'],
  ])('responds to a POST to %s with %j and Connection: %s', async (path, headers, expected) => {
    stop = watchClients(0)
    server = createServer((_, response) => response.end())
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', () => resolve()))
    const { port } = server.address() as AddressInfo
    const connection = await new Promise((resolve) => {
      const agent = new Agent({ keepAlive: true })
      const request = ask({ port, host: '127.0.0.1', path, method: 'POST', headers, agent }, (response) => {
        resolve(response.headers.connection)
        request.destroy()
      })
      request.flushHeaders()
    })
    expect(connection).toBe(expected)
  })

  test('closes the connection of a client that sends too slowly', async () => {
    stop = watchClients(0, { headersMs: 50, requestMs: 100 })
    // Node checks its connections at this interval, which Next leaves at 30 seconds.
    server = createServer({ connectionsCheckingInterval: 20 }, (request) => request.resume())
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', () => resolve()))
    const { port } = server.address() as AddressInfo
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk.toString()
    })
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf')
    await new Promise<void>((resolve) => socket.once('close', () => resolve()))
    expect(answer).toMatch(/^HTTP\/1.1 408 /)
  })
})
