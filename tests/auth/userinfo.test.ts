import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { verifyAccessToken } from '#lib/auth/oidc/sign-in.ts'
import { captureLog } from '../support/console.ts'
import { serveLocally } from '../support/local-server.ts'
import { NOW, NOW_SECONDS } from './challenges.ts'
import { type ProviderKey, providerKey } from './provider-server.ts'

let origin: string
let key: ProviderKey
let tenant = 0
let issuer: string
let endpoint: string | undefined
let userinfo: (request: IncomingMessage, response: ServerResponse) => void
let authorizations: (string | undefined)[]

const answer: RequestListener = (request, response) => {
  const json = (body: object) => response.end(JSON.stringify(body))
  if (request.url?.endsWith('/openid-configuration')) {
    json({ issuer, jwks_uri: `${origin}/jwks`, userinfo_endpoint: endpoint })
  } else if (request.url === '/jwks') json({ keys: [key.jwk] })
  else if (request.url?.startsWith('/me')) {
    authorizations.push(request.headers.authorization)
    userinfo(request, response)
  } else response.writeHead(404).end()
}

beforeAll(async () => {
  key = await providerKey('k1')
  const listening = await serveLocally(answer)
  origin = listening.url
  return listening.close
})
beforeEach(() => {
  captureLog()
  tenant += 1
  issuer = `${origin}/tenant-${tenant}`
  endpoint = `${origin}/me`
  authorizations = []
  userinfo = (_request, response) => response.end(JSON.stringify(VERIFIED))
})
afterEach(() => {
  vi.restoreAllMocks()
})

const VERIFIED = { sub: 'user-1', email: 'ann@b.example', email_verified: true }

async function signIn(more: object = {}) {
  const claims = { iss: issuer, aud: 'us', sub: 'user-1', iat: NOW_SECONDS, exp: NOW_SECONDS + 600, ...more }
  const token = await key.sign(claims)
  const settings = { issuer, audience: 'us', algorithms: ['ES256'], emailClaim: 'email' }
  const { identity } = await verifyAccessToken(settings, token, NOW)
  return { token, identity }
}

test('is called with the access token if the token has no email claim', async () => {
  const { token, identity } = await signIn()
  expect(identity).toEqual({ kind: 'idp', sub: 'user-1', issuer, email: 'ann@b.example' })
  expect(authorizations).toEqual([`Bearer ${token}`])
})

test.each([
  ['a verified email', { email: 'own@b.example', email_verified: true }, 'own@b.example'],
  ['an email that is not verified', { email: 'own@b.example', email_verified: false }, null],
])('is not called if the token has %s', async (_what, more, email) => {
  expect((await signIn(more)).identity.email).toBe(email)
  expect(authorizations).toEqual([])
})

test('is not called for an invalid token', async () => {
  await expect(signIn({ aud: 'them' })).rejects.toMatchObject({ code: 'identity-token-invalid' })
  expect(authorizations).toEqual([])
})

test.each([undefined, 'http://id.example/me', 'nonsense', 7])('is not called at %j', async (address) => {
  endpoint = address as string | undefined
  expect((await signIn()).identity.email).toBeUndefined()
  expect(authorizations).toEqual([])
})

describe('lets the user in without an email', () => {
  const respondWith =
    (body: unknown, status = 200): RequestListener =>
    (_request, response) =>
      void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
  test.each<[string, typeof userinfo, null?]>([
    ['of another user', respondWith({ ...VERIFIED, sub: 'user-2' })],
    ['of nobody', respondWith({ ...VERIFIED, sub: undefined })],
    ['that is not verified', respondWith({ ...VERIFIED, email_verified: false }), null],
    ['verified as a string', respondWith({ ...VERIFIED, email_verified: 'true' }), null],
    ['that is not an address', respondWith({ ...VERIFIED, email: 'ann' }), null],
    ['refused', respondWith({ error: 'invalid_token' }, 401)],
    ['with status 500', respondWith(VERIFIED, 500)],
    ['that is not JSON', respondWith('eyJhbGciOi.J.x')],
    ['that is a list', respondWith([VERIFIED])],
    ['without end', respondWith({ ...VERIFIED, filler: 'x'.repeat(600_000) })],
    ['elsewhere', (_request, response) => response.writeHead(302, { location: '/me2' }).end()],
    ['cut off', (request) => request.socket.destroy()],
  ])('from a response %s', async (_what, respond, email) => {
    userinfo = respond
    const { identity } = await signIn()
    expect(identity).toEqual({ kind: 'idp', sub: 'user-1', issuer, ...(email === null && { email }) })
    expect(authorizations).toHaveLength(1)
  })
})
