import { setImmediate } from 'node:timers/promises'
import { unstable_doesMiddlewareMatch as doesMatch } from 'next/experimental/testing/server.js'
import { NextRequest } from 'next/server.js'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ROUTES } from '#lib/http/front.ts'
import { config, proxy } from '../../proxy.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const page = (init: { method?: string; headers?: Record<string, string> } = {}) =>
  proxy(new NextRequest('http://localhost:3000/sign-in', init))

const hasPolicy = (path: string) => doesMatch({ config, nextConfig: {}, url: path })

describe('the policy of a page', () => {
  test.each([
    ...['/', '/sign-in', '/sign-in/', '/nowhere', '/overview', '/invite/token', '/invite/late', '/batches/1'],
    ...[
      '/docs',
      '/docs/contractors',
      '/docs/a/b/c',
      '/docsx',
      '/iconx',
      '/icon',
      '/.well-known/x',
      '/.well-known/stellar.toml/x',
    ],
    ...['/apix', '/sign-in/password/x', '/sign-outs', '/invite/emails', '/_next/staticx'],
  ])('%s', (path) => {
    expect(hasPolicy(path)).toBe(true)
  })

  test.each([
    ...['/api', '/api/me', '/icon.svg', '/.well-known/stellar.toml'],
    ...['/sign-in/password', '/sign-in/password/', '/sign-out', '/act', '/invite/email', '/invite/sign-in'],
  ])('sets no policy for %s, which reads a body or isn’t a page', (path) => {
    expect(hasPolicy(path)).toBe(false)
  })
})

test('skips every path that reads a body, because Next would truncate it', () => {
  for (const path of ROUTES) expect(hasPolicy(path)).toBe(false)
})

test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('responds to %s of a page with 405', async (method) => {
  const answer = await page({ method })
  expect([answer.status, answer.headers.get('allow'), await answer.text()]).toEqual([405, 'GET, HEAD', ''])
})

test('limits the pages of one client and not of another', async () => {
  vi.spyOn(performance, 'now').mockReturnValue(1e12)
  const ask = (client: string) => page({ headers: { 'x-client-address': client } })
  for (let count = 0; count < 300; count += 1) expect((await ask('192.0.2.80')).status).toBe(200)
  const refused = await ask('192.0.2.80')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.text()).toBe('too many requests from this address\n')
  expect((await ask('192.0.2.81')).status).toBe(200)
})

test('responds 503 while 256 pages are waiting', async () => {
  const answers = await Promise.all(Array.from({ length: 300 }, () => page()))
  const refused = answers.filter(({ status }) => status === 503)
  expect([refused.length, refused[0]?.headers.get('retry-after')]).toEqual([300 - 256, '1'])
  expect((await page()).status).toBe(200)
})

test('sends one refusal per turn of the event loop', async () => {
  let isDone = false
  let answered = 0
  let most = 0
  const all = Promise.all(Array.from({ length: 50 }, () => page({ method: 'POST' }).then(() => (answered += 1))))
  all.finally(() => {
    isDone = true
  })
  for (let before = 0; !isDone; before = answered) {
    await setImmediate()
    most = Math.max(most, answered - before)
  }
  expect([most, answered]).toEqual([1, 50])
})
