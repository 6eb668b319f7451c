import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { installFrontListener } from '#lib/http/front.ts'
import { contentSecurityPolicy } from '#lib/http/page-headers.ts'

const closers: (() => unknown)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** A server that responds 200 to every request and accepts every upgrade, behind the front listener. */
async function serve(isDevelopment: boolean, keepAliveMs?: number): Promise<number> {
  const server = createServer((_, response) => response.end())
  server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: close\r\n\r\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  closers.push(installFrontListener(port, isDevelopment, keepAliveMs), () => server.close())
  return port
}

/** The status of the response, with an offer to upgrade if `upgrades`. */
function statusOf(port: number, path: string, { method = 'GET', upgrades = false } = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = upgrades ? { Connection: 'Upgrade', Upgrade: 'websocket' } : {}
    request({ port, path, method, headers })
      .on('response', (response) => resolve(response.resume().statusCode))
      .on('upgrade', (response) => resolve(response.statusCode))
      .on('error', reject)
      .end()
  })
}

const EXEMPT = [
  ['/_next/hmr?id=1', { upgrades: true }, 101, 404],
  ['/_next/mcp', {}, 200, 404],
  ['/__nextjs_original-stack-frames', { method: 'POST' }, 200, 405],
] as const
const SCREENED = [
  ['/overview', { upgrades: true }, 200],
  ['/overview', { method: 'POST' }, 405],
] as const

describe.each([true, false])('with a development server: %s', (isDevelopment) => {
  test.each(EXEMPT)('%s %j responds %i in development and %i in production', async (path, init, there, here) => {
    expect(await statusOf(await serve(isDevelopment), path, init)).toBe(isDevelopment ? there : here)
  })

  test.each(SCREENED)('%s %j responds %i', async (path, init, status) => {
    expect(await statusOf(await serve(isDevelopment), path, init)).toBe(status)
  })
})

test.each([undefined, 90_000])('keeps an idle connection open for the configured time: %s', async (milliseconds) => {
  const response = await fetch(`http://127.0.0.1:${await serve(false, milliseconds)}/overview`)
  expect(response.headers.get('keep-alive')).toBe(`timeout=${(milliseconds ?? 65_000) / 1_000}`)
})

test('only development allows eval and inline styles in pages', () => {
  expect(contentSecurityPolicy('abc')).not.toMatch(/unsafe-eval|style-src [^;]*'unsafe-inline'/)
  expect(contentSecurityPolicy('abc', true)).toMatch(/script-src [^;]*'unsafe-eval'.*style-src [^;]*'unsafe-inline'/)
})
