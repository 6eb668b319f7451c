import { Agent, request as ask, createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { OPERATIONS } from '#lib/api/interface.ts'
import { routes } from '#lib/api/routes.ts'
import { clientOf, watchClients } from '#lib/http/client-address.ts'
import { requireRequestLeft, takeRequest } from '#lib/http/request-limit.ts'
import { captureLog } from '../support/console.ts'

describe('the limit of 30 requests a second and 300 in a burst', () => {
  const SECOND = 1_000

  test('tells the 301st request when to retry', () => {
    const allowances = new Map()
    for (let count = 0; count < 300; count += 1) expect(takeRequest(allowances, 'a', 0)).toBe(0)
    expect(takeRequest(allowances, 'a', 0)).toBe(1)
    expect(takeRequest(allowances, 'a', 33)).toBe(1)
    expect(takeRequest(allowances, 'a', 34)).toBe(0)
    const second = Array.from({ length: 40 }, () => takeRequest(allowances, 'a', 34 + SECOND))
    expect(second.filter((wait) => wait === 0)).toHaveLength(30)
  })

  test('counts each client separately', () => {
    const allowances = new Map()
    for (let count = 0; count < 301; count += 1) takeRequest(allowances, 'a', 0)
    expect(takeRequest(allowances, 'b', 0)).toBe(0)
  })

  test('allows at most 300 requests again after a pause', () => {
    const allowances = new Map()
    for (let count = 0; count < 301; count += 1) takeRequest(allowances, 'a', 0)
    const answers = Array.from({ length: 301 }, () => takeRequest(allowances, 'a', 60 * SECOND))
    expect(answers.filter((wait) => wait === 0)).toHaveLength(300)
  })

  test('remembers 20,000 clients and forgets the one that has been idle longest', () => {
    const allowances = new Map()
    for (let client = 0; client < 20_000; client += 1) takeRequest(allowances, `c${client}`, 0)
    takeRequest(allowances, 'c0', 1)
    takeRequest(allowances, 'new', 1)
    expect([allowances.size, allowances.has('c0'), allowances.has('c1')]).toEqual([20_000, true, false])
  })
})

describe('an operation without a session', () => {
  const paths = [...new Set(OPERATIONS.filter(({ group }) => group === 'Sessions').map(({ path }) => path))]

  test.each(paths)('refuses %s to a client over its limit before doing anything else', async (path) => {
    const client = `192.0.2.${paths.indexOf(path) + 1}`
    const routesOfPath = routes(path, OPERATIONS)
    const method = OPERATIONS.find((operation) => operation.path === path)?.method ?? 'GET'
    for (let count = 0; count < 300; count += 1)
      requireRequestLeft(new Headers({ 'x-client-address': client }), 'session', 1e12)
    const limited = new Request(`http://localhost:3000/api${path}`, {
      method,
      headers: { 'x-client-address': client },
    })
    vi.spyOn(performance, 'now').mockReturnValue(1e12)
    const answer = await routesOfPath[method](limited, undefined)
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '1'])
    expect(await answer.json()).toEqual({ error: 'too many requests from this address', code: 'rate-limited' })
  })
})

test('shows the sign-in page to a client with no password attempts left', () => {
  const headers = new Headers({ 'x-client-address': '192.0.2.99' })
  for (let tried = 0; tried < 300; tried += 1) requireRequestLeft(headers, 'password', 1e12)
  expect(() => requireRequestLeft(headers, 'password', 1e12)).toThrow('too many requests from this address')
  expect(() => requireRequestLeft(headers, 'page', 1e12)).not.toThrow()
})

test('limits password attempts that skip the wait to bursts of 30 and three per second', () => {
  const headers = new Headers({ 'x-client-address': '192.0.2.98' })
  const tries = (now: number) =>
    Array.from({ length: 100 }, () => {
      try {
        requireRequestLeft(headers, 'drawn-password', now)
        return true
      } catch {
        return false
      }
    }).filter(Boolean).length
  expect([tries(1e12), tries(1e12 + 1_000), tries(1e12 + 2_000)]).toEqual([30, 3, 3])
  expect(() => requireRequestLeft(headers, 'password', 1e12)).not.toThrow()
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
