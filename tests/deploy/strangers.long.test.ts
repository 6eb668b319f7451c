import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildIfStale } from '#lib/cli/build.ts'
import { answers } from '#lib/cli/process/serve.ts'
import { freePort } from '../support/port.ts'
import { rawRequest, wired } from '../support/raw-request.ts'

/** The programs that serve the build: the one that `npm start` runs, and the image's. */
const PROGRAMS: Record<string, string[]> = {
  'npm start': ['lib/cli/start.ts'],
  'server.js': ['tests/support/standalone-server.ts'],
}

describe.each(Object.keys(PROGRAMS))('%s', (name) => {
  let child: ChildProcess
  let base: string
  let lines: string[] = []

  beforeAll(async () => {
    buildIfStale()
    const port = await freePort()
    base = `http://127.0.0.1:${port}`
    const variables = {
      PORT: String(port),
      PUBLIC_URL: base,
      DATABASE_URL: 'postgres://127.0.0.1:1/gone',
      STELLAR_RPC_URL: 'http://127.0.0.1:1',
      SESSION_SECRET: 'a secret for tests, long enough for HS256',
      CORS_ORIGINS: 'https://pay.example',
    }
    child = spawn(process.execPath, PROGRAMS[name] ?? [], {
      env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
    }
    while (!(await answers(base))) await new Promise((resolve) => setTimeout(resolve, 100))
    lines = []
  })
  afterAll(() => {
    child?.kill('SIGKILL')
  })

  const descriptors = () => readdirSync(`/proc/${child.pid}/fd`).length

  const upgrade = (path: string) =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n`

  test('responds to a request with Upgrade as if it had none', async () => {
    for (const path of ['/nope', '/', '/api/health', '/api/nope', '/_next/hmr']) {
      const [first = ''] = (await wired(base, [upgrade(path)])).split('\r\n')
      expect(first).toMatch(/^HTTP\/1.1 (200|404)/)
    }
  })

  test('closes the descriptors of connections that requested an upgrade', async () => {
    const before = descriptors()
    const sockets: Socket[] = []
    for (let index = 0; index < 200; index += 1) {
      const socket = connect(Number(new URL(base).port), '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write(upgrade(`/nope/${index}`))
      sockets.push(socket)
    }
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('data', resolve))))
    for (const socket of sockets) socket.destroy()
    await expect.poll(descriptors).toBeLessThan(before + 20)
  })

  test('responds to a client that offers h2c', async () => {
    const offer =
      'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n'
    expect(await wired(base, [offer])).toMatch(/^HTTP\/1.1 200 .*"ok":true/s)
  })

  test.each([
    ['TRACE /api/me', 404],
    ['TRACE /', 405],
    ['PROPFIND /api/me', 404],
    ['OPTIONS *', 204],
    ['HEAD *', 400],
    ['GET http://[::', 400],
    ['GET /api/contractors/%zz', 401],
    ['GET /api/batches/%', 401],
    ['GET /api/batch/%ff', 401],
    ['GET /batches/%zz', 307],
    ['GET /_next/image?url=%2Ficon.svg&w=64&q=75', 404],
    ['GET /_next/image', 404],
    ['GET /_next/x', 404],
    ['POST /nowhere', 405],
    ['GET /api//health', 200],
    ['GET //api/health', 200],
    ['GET /api\\health', 200],
    ['OPTIONS /api//me', 204],
  ])('responds to %s with %i', async (line, status) => {
    const text = await wired(base, [`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`])
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(text).toMatch(/^X-Request-Id: /im)
  })

  test('sends CORS headers with every response of the API', async () => {
    for (const [method, path] of [
      ['GET', '/api//me'],
      ['TRACE', '/api/me'],
      ['GET', '/api/batches/%zz'],
    ] as const) {
      const { headers } = await rawRequest(base, path, { method, headers: { Origin: 'https://pay.example' } })
      expect(headers['access-control-allow-origin']).toBe('https://pay.example')
    }
  })

  test.each<Record<string, string>>([
    { RSC: '1' },
    { RSC: '1', 'Next-Router-Prefetch': '1', 'Next-Router-State-Tree': '[]' },
    { 'Next-Router-State-Tree': '%' },
  ])('ignores the headers of a client router under /api: %j', async (headers) => {
    const plain = await rawRequest(base, '/api/health')
    const other = await rawRequest(base, '/api/health', { headers })
    expect([other.status, other.text, other.headers['content-type']]).toEqual([
      200,
      plain.text,
      plain.headers['content-type'],
    ])
  })

  test.each(['[]', '{', '%', '["",{},null,"x"]', `${'['.repeat(50_000)}`.slice(0, 10_000), '["",{"a":1}]'])(
    'responds with a page to a malformed router state',
    async (tree) => {
      for (const path of ['/nope', '/']) {
        const { status } = await rawRequest(base, path, { headers: { RSC: '1', 'Next-Router-State-Tree': tree } })
        expect(status).toBeLessThan(500)
      }
    },
  )

  test('writes only JSON objects of at most 4 KB to the log', async () => {
    lines = []
    const long = 'A'.repeat(10_000)
    for (const request of [
      `POST /_next/x?${long} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello`,
      `POST /nope?${long} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
      `GET /nope?${long} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello`,
      'GET http://[:: HTTP/1.1\r\nHost: x\r\n\r\n',
      'TRACE / HTTP/1.1\r\nHost: x\r\n\r\n',
      `GET /overview HTTP/1.1\r\nHost: x\r\nRSC: 1\r\nNext-Router-State-Tree: ${long}\r\n\r\n`,
      `GET /batches/%zz HTTP/1.1\r\nHost: x\r\nRSC: 1\r\n\r\n`,
      `POST / HTTP/1.1\r\nHost: x\r\nNext-Action: x\r\nContent-Length: 0\r\n\r\n`,
      `GET /${long} HTTP/1.1\r\nHost: x\r\n\r\n`,
    ]) {
      await wired(base, [request, 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'])
    }
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) {
      expect(JSON.parse(line)).toMatchObject({ level: expect.any(String), event: expect.any(String) })
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(4096)
    }
  })

  test.each(['/_next/x', '/nope', '/overview', '/invite/email', '/sign-in/password', '/api/auth/sep10/verify'])(
    'survives a client that hangs up during its upload to %s',
    async (path) => {
      lines = []
      for (const head of ['Content-Length: 1000', 'Transfer-Encoding: chunked']) {
        for (const method of ['POST', 'GET', 'PUT']) {
          const socket = connect(Number(new URL(base).port), '127.0.0.1')
          socket.on('error', () => undefined)
          socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${head}\r\n\r\n`)
          await new Promise((resolve) => setTimeout(resolve, 50))
          socket.resetAndDestroy()
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(await answers(base)).toBe(true)
      // A chore may fail on a machine that is too busy for the database; it has nothing to do with the client.
      const failures = lines.filter((line) => !line.startsWith('{') || line.includes('"level":"error"'))
      const isOfDatabase = (line: string) =>
        line.includes('"event":"chore"') && line.includes('the database cannot be reached')
      expect(failures.filter((line) => !isOfDatabase(line))).toEqual([])
    },
  )

  test('exits on SIGTERM', async () => {
    const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)))
    child.kill('SIGTERM')
    expect(await ended).toBe(143)
  })
})
