import { once } from 'node:events'
import { connect } from 'node:net'
import { decodeProtectedHeader, type JWK } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ProviderSettings } from '#lib/auth/oidc/provider.ts'
import { verifyAccessToken } from '#lib/auth/oidc/sign-in.ts'
import { generateIdentityKey, identityIssuer } from '#lib/devnet/services/identity.ts'
import { type LocalServer, serveLocally } from '../support/local-server.ts'
import { rawRequest } from '../support/raw-request.ts'

let key: JWK
let listener: LocalServer
let issuer: string

async function serve(port: number): Promise<void> {
  listener = await serveLocally(
    (...args) => identityIssuer({ issuer, audience: 'payroll', key, publicUrl: 'https://pay.example' })(...args),
    port,
  )
  issuer = `${listener.url}/idp`
}

beforeAll(async () => {
  key = await generateIdentityKey()
  await serve(0)
})
afterAll(() => listener.close())

const ask = (body: string) =>
  fetch(`${issuer}/token`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
const tokenFor = async (request: object): Promise<string> =>
  ((await (await ask(JSON.stringify(request))).json()) as { access_token: string }).access_token
const provider = (): ProviderSettings => ({ issuer, audience: 'payroll', algorithms: ['ES256'], emailClaim: 'email' })

describe('the test issuer', () => {
  test('issues a token that the service accepts through discovery', async () => {
    const response = await ask(JSON.stringify({ sub: 'ann', email: 'ann@example.com' }))
    expect(response.status).toBe(200)
    const body = (await response.json()) as { access_token: string }
    expect(body).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 3600 })
    const { identity, expiresAt } = await verifyAccessToken(provider(), body.access_token, new Date())
    expect(identity).toEqual({ kind: 'idp', sub: 'ann', issuer, email: 'ann@example.com' })
    expect(expiresAt.getTime()).toBeGreaterThan(Date.now())
    expect(decodeProtectedHeader(body.access_token)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
  })

  test('accepts every email address that the directory accepts', async () => {
    const token = await tokenFor({ sub: 'jo', email: 'jörg@bücher.example' })
    const { identity } = await verifyAccessToken(provider(), token, new Date())
    expect(identity).toMatchObject({ sub: 'jo', email: 'jörg@bücher.example' })
  })

  test('issues a token without an email address', async () => {
    const { identity } = await verifyAccessToken(provider(), await tokenFor({ sub: 'bob' }), new Date())
    expect(identity).toEqual({ kind: 'idp', sub: 'bob', issuer })
  })

  test('publishes its issuer, keys and token endpoint and no private key', async () => {
    const discovery = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
    expect(discovery).toMatchObject({ issuer, jwks_uri: `${issuer}/jwks`, token_endpoint: `${issuer}/token` })
    const { keys } = (await (await fetch(`${issuer}/jwks`)).json()) as { keys: JWK[] }
    expect(keys).toEqual([
      { kty: 'EC', crv: 'P-256', x: key.x, y: key.y, kid: expect.any(String), alg: 'ES256', use: 'sig' },
    ])
  })

  test.each([
    '',
    'no json',
    'null',
    '[]',
    '{}',
    '{"sub":""}',
    '{"sub":7}',
    '{"sub":"a\\u0000"}',
    '{"sub":"a","email":"nobody"}',
    '{"sub":"a","email":7}',
    JSON.stringify({ sub: 'a', filler: 'x'.repeat(20_000) }),
  ])('responds 400 to %.40s', async (body) => {
    const response = await ask(body)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: 'invalid_request' })
  })

  const askAs = (headers: Record<string, string>) =>
    rawRequest(issuer, '/idp/token', { method: 'POST', headers, body: '{"sub":"ann"}' })
  const JSON_TYPE = { 'content-type': 'application/json' }

  test.each([undefined, 'http://localhost:5173', 'http://127.0.0.1', 'http://[::1]:1', 'https://pay.example'])(
    'issues a token to the origin %s, and lets no other origin read it',
    async (origin) => {
      const { status, headers } = await askAs({ ...JSON_TYPE, ...(origin && { origin }) })
      expect([status, headers['access-control-allow-origin']]).toEqual([200, origin])
      expect(headers.vary).toBe('Origin')
    },
  )

  test.each([
    'https://evil.example',
    'null',
    'http://localhost.evil.example',
    'http://pay.example',
    'https://pay.example:1',
  ])('refuses a page of %s', async (origin) => {
    const { status, headers } = await askAs({ ...JSON_TYPE, origin })
    expect([status, headers['access-control-allow-origin']]).toEqual([403, undefined])
  })

  test.each(['evil.example', 'evil.example:8000', '192.0.2.1', 'localhost.evil.example'])(
    'refuses a request to the host %s, which may be a name that an attacker points here',
    async (host) => {
      expect((await askAs({ ...JSON_TYPE, host })).status).toBe(403)
    },
  )

  test.each(['text/plain', 'application/x-www-form-urlencoded', ''])('refuses the content type "%s"', async (type) => {
    expect((await askAs({ 'content-type': type })).status).toBe(415)
  })

  test('serves its keys to every origin', async () => {
    expect((await fetch(`${issuer}/jwks`)).headers.get('access-control-allow-origin')).toBe('*')
  })

  test('responds to preflight requests, and to anything else with 404', async () => {
    const preflight = await fetch(`${issuer}/token`, { method: 'OPTIONS' })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('content-type')
    for (const path of ['', '/token', '/nope', '/../idpx/jwks']) {
      expect((await fetch(`${issuer}${path}`)).status).toBe(404)
    }
    expect((await fetch(`${issuer}/jwks`, { method: 'POST' })).status).toBe(404)
  })

  test.each([
    ['a request line without a path', 'GET // HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an incomplete body', 'POST /idp/token HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"sub"'],
  ])('survives %s', async (_name, bytes) => {
    const socket = connect(listener.port, '127.0.0.1')
    socket.end(bytes)
    await once(socket.resume(), 'close')
    expect((await fetch(`${issuer}/jwks`)).status).toBe(200)
  })

  test('accepts tokens from before a restart with the same key', async () => {
    const token = await tokenFor({ sub: 'carol' })
    const { port } = new URL(issuer)
    await listener.close()
    await serve(Number(port))
    const { identity } = await verifyAccessToken(provider(), token, new Date())
    expect(identity.sub).toBe('carol')
    expect(await verifyAccessToken(provider(), await tokenFor({ sub: 'dave' }), new Date())).toBeDefined()
  })
})
