import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { Keypair, type Operation, Transaction } from '@stellar/stellar-sdk'
import { sql } from 'drizzle-orm'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nextProgram } from '#lib/cli/build.ts'
import { answers } from '#lib/cli/process/serve.ts'
import { cloneDatabase } from '../support/database.ts'
import { type Gate, makeGate } from '../support/gate.ts'
import { freePort } from '../support/port.ts'
import { openProgramService, type Program, startProgram } from '../support/program.ts'
import { rawRequest, wired, wiredBody } from '../support/raw-request.ts'
import type { SignedInPayer, TestService } from '../support/test-service.ts'

const FRONTEND = 'https://pay.example'
const ELSEWHERE = 'https://evil.example'

let service: TestService<'embedded'>
let gate: Gate
let program: Program
let base: string
let employer: SignedInPayer

beforeAll(async () => {
  ;({ service, base } = await openProgramService({ CORS_ORIGINS: FRONTEND, TRANSFER_WAIT: '5' }))
  employer = await service.employ(0n)
  gate = await makeGate(service.database.url)
  program = await startProgram(base, { ...service.variables, DATABASE_URL: gate.url })
})
afterAll(async () => {
  await program?.kill()
  await gate?.shut()
  await service?.close()
})

const bearer = () => ({ Authorization: `Bearer ${employer.session}` })

async function ask(path: string, init: RequestInit = {}) {
  const response = await fetch(`${base}/api${path}`, { ...init, headers: { ...bearer(), ...init.headers } })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}

const ROUTES = ['/me', '/contractors', '/payouts', '/batches/00000000-0000-4000-8000-000000000000']

async function expectOutage(): Promise<void> {
  for (const path of ROUTES) {
    const { status, headers, body } = await ask(path)
    expect([status, body]).toEqual([503, { error: 'the database cannot be reached', code: 'unavailable' }])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect(await ask('/health')).toMatchObject({ status: 200, body: { ok: true, sponsor: true } })
}

describe('an unreachable database', () => {
  test('causes 503 at startup, and recovers without a restart', async () => {
    await expectOutage()
    expect(await ask('/ready')).toMatchObject({ status: 503, body: { ok: false, database: { ok: false } } })
    await gate.open()
    expect(await ask('/me')).toMatchObject({ status: 200 })
  })

  test('causes only 200 and 503 during three outages, and 200 afterwards', async () => {
    for (let outage = 0; outage < 3; outage += 1) {
      const crowd = Array.from({ length: 24 }, (_, index) => ask(ROUTES[index % 3] ?? ''))
      await gate.shut()
      const statuses = (await Promise.all(crowd)).map(({ status }) => status)
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
      await expectOutage()
      await gate.open()
      const after = await Promise.all(Array.from({ length: 24 }, (_, index) => ask(ROUTES[index % 3] ?? '')))
      expect(after.map(({ status }) => status)).toEqual(Array.from({ length: 24 }, () => 200))
    }
  })

  test('stores a contractor after a 200, and at most once after a 503', async () => {
    const make = ask('/contractors', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'Ada', email: 'ada@example.com' }),
    })
    await gate.shut()
    const { status } = await make
    expect([200, 503]).toContain(status)
    await gate.open()
    const { body } = await ask('/contractors')
    const names = (body as { contractors?: { name: string }[] }).contractors?.map(({ name }) => name)
    expect(status === 200 ? [['Ada']] : [['Ada'], []]).toContainEqual(names)
  })
})

test('responds 503 while the RPC is unreachable', async () => {
  const { status: before } = await ask('/funding/vault')
  service.ledger.proxy.rule(() => ({ drop: true, delivered: false }))
  const { status, body } = await ask('/funding/vault')
  service.ledger.proxy.rule(null)
  expect([status, body]).toEqual([503, { error: 'the ledger cannot be reached', code: 'unavailable' }])
  expect([before, (await ask('/funding/vault')).status]).toEqual([200, 200])
})

describe('forged headers', () => {
  const forged = {
    Host: 'evil.example',
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Port': '443',
    'X-Forwarded-For': '127.0.0.1',
    Forwarded: 'host=evil.example;proto=https',
    Origin: ELSEWHERE,
  }

  test.each(['/api/auth/sep10/challenge', '/api/auth/sep10'])('do not affect the challenge of %s', async (path) => {
    const wallet = Keypair.random()
    const { text } = await rawRequest(base, `${path}?account=${wallet.publicKey()}`, { headers: forged })
    const { transaction, network_passphrase } = JSON.parse(text) as { transaction: string; network_passphrase: string }
    const [auth, domain] = new Transaction(transaction, network_passphrase).operations as Operation.ManageData[]
    expect(auth?.name).toBe(`${new URL(base).host} auth`)
    expect(Buffer.from(domain?.value ?? []).toString()).toBe(new URL(base).host)
    expect(text).not.toContain('evil')
  })

  test('do not affect the session, which is valid only for the configured address', async () => {
    const wallet = employer.signer
    const { text } = await rawRequest(base, `/api/auth/sep10/challenge?account=${wallet.publicKey()}`)
    const { transaction, network_passphrase } = JSON.parse(text) as { transaction: string; network_passphrase: string }
    const challenge = new Transaction(transaction, network_passphrase)
    challenge.sign(wallet)
    const answer = await rawRequest(base, '/api/auth/sep10/verify', {
      method: 'POST',
      headers: { ...forged, 'Content-Type': 'application/json' },
      body: JSON.stringify({ transaction: challenge.toXdr() }),
    })
    const { session } = JSON.parse(answer.text) as { session: string }
    expect(decodeJwt(session)).toMatchObject({ iss: base, aud: `${base}/api`, sub: wallet.publicKey() })
  })

  test.each(['/.well-known/stellar.toml', '/api/me', '/api/health', '/api//health', '/overview', '/sign-in/'])(
    'are not echoed by %s',
    async (path) => {
      const { headers, text } = await rawRequest(base, path, { headers: { ...forged, ...bearer() } })
      expect(JSON.stringify(headers) + text).not.toContain('evil')
    },
  )
})

describe('CORS', () => {
  const preflight = (path: string, origin: string) =>
    rawRequest(base, path, {
      method: 'OPTIONS',
      headers: {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization',
      },
    })

  test.each(['/api/transfer', '/api/transfer/', '/api/batches/x/ready', '/api/nowhere'])(
    'allows a preflight of %s from the configured origin only',
    async (path) => {
      const allowed = await preflight(path, FRONTEND)
      expect(allowed.status).toBe(204)
      expect(allowed.headers).toMatchObject({
        'access-control-allow-origin': FRONTEND,
        'access-control-allow-headers': 'authorization',
        vary: expect.stringMatching(/\borigin\b/i),
      })
      const other = await preflight(path, ELSEWHERE)
      expect(other.status).toBe(204)
      expect(other.headers).not.toHaveProperty('access-control-allow-origin')
    },
  )

  test.each(['/api/auth/sep10', '/api/auth/sep10/', '/.well-known/stellar.toml'])(
    'allows wallets of every origin to use %s, as the standard requires',
    async (path) => {
      for (const origin of [FRONTEND, ELSEWHERE]) {
        const response = await preflight(path, origin)
        expect([response.status, response.headers['access-control-allow-origin']]).toEqual([204, '*'])
        const answer = await rawRequest(base, path, { headers: { Origin: origin } })
        expect(answer.headers['access-control-allow-origin']).toBe('*')
      }
    },
  )

  test('lets a wallet of another origin read errors of the SEP-10 route, but no response of other routes', async () => {
    const post = (path: string) =>
      rawRequest(base, path, {
        method: 'POST',
        headers: { Origin: ELSEWHERE, 'Content-Type': 'application/json' },
        body: JSON.stringify({ transaction: 'AAAA' }),
      })
    expect(await post('/api/auth/sep10')).toMatchObject({
      status: 400,
      headers: { 'access-control-allow-origin': '*' },
    })
    const own = await post('/api/auth/sep10/verify')
    expect(own.status).toBe(400)
    expect(own.headers).not.toHaveProperty('access-control-allow-origin')
  })

  test('lets the allowed origin read errors', async () => {
    const refused = await rawRequest(base, '/api/me', { headers: { Origin: FRONTEND } })
    expect(refused.status).toBe(401)
    expect(refused.headers).toMatchObject({
      'access-control-allow-origin': FRONTEND,
      'access-control-expose-headers':
        'Link, Retry-After, WWW-Authenticate, X-Request-Id, X-Total-Count, Idempotency-Replayed, Deprecation, Sunset',
      'www-authenticate': 'Bearer',
    })
  })
})

describe('paths and methods', () => {
  test.each(['/api/health', '/api/me', '/.well-known/stellar.toml'])('ignores a trailing slash of %s', async (path) => {
    const [plain, withSlash] = await Promise.all(
      [path, `${path}/`].map((each) => rawRequest(base, each, { headers: bearer() })),
    )
    expect(plain?.status).toBe(200)
    expect(withSlash).toMatchObject({ status: 200, text: plain?.text })
  })

  test('keeps the body of a POST with a trailing slash', async () => {
    const send = (body: string) =>
      rawRequest(base, '/api/auth/sep10/', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
    const { status, text } = await send(JSON.stringify({ transaction: 'AAAA' }))
    expect([status, JSON.parse(text)]).toEqual([
      400,
      { error: expect.stringMatching(/^invalid challenge: /), code: 'challenge-invalid' },
    ])
    // This is the response to an empty body; the responses above show that bodies are not lost.
    expect(JSON.parse((await send('')).text)).toEqual({ error: 'transaction required', code: 'transaction-required' })
  })

  test.each([
    ['POST', '/api/auth/idp', 501],
    ['POST', '/api/auth/sep10/verify', 413],
    ['POST', '/api/funding/faucet', 401],
    ['POST', '/api/nowhere', 404],
    ['POST', '/invite/email', 501],
    ['POST', '/nowhere', 405],
    ['POST', '/', 405],
  ])('keeps the connection usable after rejecting a large body of %s %s', async (method, path, status) => {
    const size = 600_000
    const type = 'Content-Type: application/json'
    const text = await wired(base, [
      `${method} ${path} HTTP/1.1\r\nHost: x\r\n${type}\r\nContent-Length: ${size}\r\n\r\n`,
      ' '.repeat(size),
      'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    ])
    expect(text.match(/^HTTP\/1.1 \d+/gm)).toEqual([`HTTP/1.1 ${status}`, 'HTTP/1.1 200'])
  })

  test.each([
    ['/api/health', 200],
    ['/api/me', 200],
    ['/api/payouts', 200],
    ['/api/transfer', 404],
    ['/api/nowhere', 404],
    ['/.well-known/stellar.toml', 200],
  ])('responds to HEAD %s like GET, without a body', async (path, status) => {
    const [get, head] = [
      await rawRequest(base, path, { headers: bearer() }),
      await rawRequest(base, path, { method: 'HEAD', headers: bearer() }),
    ]
    expect([get.status, head.status]).toEqual([status, status])
    expect(head.headers['content-type']).toBe(get.headers['content-type'])
    expect(await wiredBody(base, path, { method: 'GET', headers: bearer() })).not.toBe('')
    expect(await wiredBody(base, path, { method: 'HEAD', headers: bearer() })).toBe('')
  })

  test.each<[string, string, object]>([
    ['GET', '/api/contractors/%00', { error: 'contractor not found', code: 'contractor-not-found' }],
    ['PATCH', '/api/contractors/a%00b', { error: 'contractor not found', code: 'contractor-not-found' }],
    ['GET', '/api/batches/%00', { error: 'batch not found', code: 'batch-not-found' }],
    ['GET', '/api/batches/%00/status', { error: 'batch not found', code: 'batch-not-found' }],
    ['POST', '/api/contractors/%00/invite', { error: 'contractor not found', code: 'contractor-not-found' }],
    ['POST', '/api/invites/%00/accept', { error: expect.any(String) }],
    ['GET', '/api/%00', { message: 'Route GET:/%00 not found' }],
    ['GET', '/api/health%00', { message: 'Route GET:/health%00 not found' }],
  ])('responds 404 to %s %s', async (method, path, body) => {
    const answer = await rawRequest(base, path, { method, headers: bearer() })
    expect(answer.status).toBe(404)
    expect(JSON.parse(answer.text)).toMatchObject(body)
  })

  test.each<[string, number, object]>([
    ['/api/payouts?batchId=%00', 200, { payouts: [] }],
    ['/api/payouts?contractorId=%00', 200, { payouts: [] }],
    ['/api/payouts?status=%00', 400, { error: expect.stringMatching(/^status must be /), code: 'status-invalid' }],
    ['/api/payouts?from=%00', 400, { error: expect.stringMatching(/^from must be /), code: 'from-invalid' }],
    ['/api/payouts?limit=%00', 400, { error: expect.stringMatching(/^limit must be /), code: 'limit-invalid' }],
    ['/api/payouts?cursor=%00', 400, { error: expect.stringMatching(/^cursor /), code: 'cursor-invalid' }],
    ['/api/auth/sep10?account=%00', 400, { error: expect.stringMatching(/^account /), code: 'account-invalid' }],
  ])('treats a NUL in the query %s as an unknown id or a bad value: %d', async (path, status, body) => {
    const answer = await rawRequest(base, path, { headers: bearer() })
    expect([answer.status, JSON.parse(answer.text)]).toEqual([status, body])
  })

  test('does not fail on a NUL in the path of a page', async () => {
    for (const path of ['/invite/%00', '/batches/%00', '/%00']) {
      expect((await rawRequest(base, path)).status).toBeLessThan(500)
    }
  })
})

test('still responds, and exits on SIGTERM, after its log has lost its reader', async () => {
  const port = await freePort()
  const own = `http://localhost:${port}`
  const variables = { ...service.variables, PORT: String(port), DATABASE_URL: 'postgres://127.0.0.1:1/gone' }
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', ...variables }
  const child = spawn(process.execPath, [nextProgram(), 'start'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)))
  try {
    for (const stream of [child.stdout, child.stderr]) stream.resume()
    await expect.poll(() => answers(own)).toBe(true)
    for (const stream of [child.stdout, child.stderr]) stream.destroy()
    // Each of these logs a failure that can no longer be written.
    for (let count = 0; count < 3; count += 1) {
      const answer = await fetch(`${own}/api/me`, { headers: bearer(), signal: AbortSignal.timeout(60_000) })
      expect(answer.status).toBe(503)
    }
    // Next.js exits with 143 after SIGTERM.
    child.kill('SIGTERM')
    expect(await Promise.race([ended, wait(60_000, 'runs on', { ref: false })])).toBe(143)
  } finally {
    child.kill('SIGKILL')
  }
})

describe('invalid configurations', () => {
  /** Runs a program; resolves to its output and its exit code. */
  function run(args: string[], variables: Record<string, string>): Promise<{ code: number | null; output: string }> {
    const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', ...variables }
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data: Buffer) => {
        output += data
      })
    }
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
  }
  const serve = [nextProgram(), 'start']
  const migrate = ['lib/cli/migrate.ts']

  test('stops the service and the migration on a database of another version, and migrates an empty one', async () => {
    const clone = await cloneDatabase()
    const db = await clone.store.database()
    await db.execute(
      sql`INSERT INTO confidential_payroll_migrations (hash, created_at) VALUES ('of another version', 1)`,
    )
    const variables = { ...service.variables, PORT: String(await freePort()), DATABASE_URL: clone.url }
    for (const program of [serve, migrate]) {
      const { code, output } = await run(program, variables)
      expect(code).toBe(1)
      expect(output).toContain('this database has tables that no release of this service has made')
    }
    for (const statement of ['DROP SCHEMA public CASCADE', 'CREATE SCHEMA public']) {
      await db.execute(sql.raw(statement))
    }
    expect(await run(migrate, variables)).toMatchObject({ code: 0 })
    expect(await db.query.quotas.findMany()).toEqual([])
    await clone.drop()
  })

  test('names a SESSION_SECRET that is too short', async () => {
    const variables = { ...service.variables, PORT: String(await freePort()), SESSION_SECRET: 'short' }
    const { code, output } = await run(serve, variables)
    expect(code).toBe(1)
    expect(output).toContain('SESSION_SECRET: ')
  })
})
