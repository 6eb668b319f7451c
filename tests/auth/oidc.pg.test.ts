import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import * as idp from '#app/api/auth/idp/route.ts'
import { captureLog } from '../support/console.ts'
import { accountOf, atNoon } from '../support/directory.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { AUDIENCE, type OidcServer, openOidcServer } from './oidc-server.ts'
import { providerKey, startTestProvider } from './provider-server.ts'

let provider: OidcServer
let service: TestService<'fake'>
let logged: string[]

beforeAll(async () => {
  provider = await openOidcServer()
  service = await openTestService(atNoon({ IDP_ISSUER: provider.issuer, IDP_AUDIENCE: AUDIENCE }))
})
afterAll(async () => {
  await service.close()
  await provider.stop()
})
beforeEach(() => {
  logged = captureLog()
  // Tokens are issued at the real time.
  service.clock.now = new Date()
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

async function exchange(token: string) {
  const headers = { 'content-type': 'application/json' }
  const request = new Request('https://pay.example/api/auth/idp', {
    method: 'POST',
    headers,
    body: JSON.stringify({ token }),
  })
  const response = await idp.POST(request, {})
  return { response, status: response.status, body: (await response.json()) as Record<string, string> }
}
const me = async (session: string | undefined) => (await service.ask('GET', '/me', { session })).body

describe('a real OpenID provider', () => {
  test('causes 503 before it is up, and is retried at the next sign-in', async () => {
    await provider.start()
    const { access_token } = await provider.logIn('alice')
    await provider.stop()
    const { response, status, body } = await exchange(access_token)
    expect([status, body]).toEqual([503, { error: 'the identity provider cannot be reached', code: 'unavailable' }])
    expect(response.headers.get('retry-after')).toBe('10')
    await provider.start()
    expect((await exchange(access_token)).status).toBe(200)
  })

  test('lets a user in with a JWT access token of a login with code and PKCE', async () => {
    const { access_token } = await provider.logIn('alice')
    expect(decodeProtectedHeader(access_token)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
    expect(decodeJwt(access_token)).toMatchObject({ iss: provider.issuer, aud: AUDIENCE, sub: 'alice' })
    const { status, body } = await exchange(access_token)
    expect([status, body]).toEqual([200, { session: expect.any(String), kind: 'idp', sub: 'alice' }])
    expect(await me(body.session)).toMatchObject({ sub: 'alice', kind: 'idp', roles: ['employer'] })
    expect(logged.join('\n')).not.toContain(access_token)
  })

  test('keeps the organisation of a user through a later invite', async () => {
    const { body } = await exchange((await provider.logIn('dora')).access_token)
    await me(body.session)
    const employer = await service.wallet(accountOf(9_102))
    service.clock.now = new Date(service.clock.now.getTime() + 1_000)
    await service.ask('POST', '/contractors', { session: employer, body: { name: 'Dora', email: 'dora@b.example' } })
    expect(await me(body.session)).toMatchObject({ roles: ['employer'], invite: { role: 'contractor' } })
  })

  test('verifies an email, so that its invite is found', async () => {
    const employer = await service.wallet(accountOf(9_100))
    await service.ask('POST', '/contractors', { session: employer, body: { name: 'Alice', email: 'alice@B.example' } })
    const { body } = await exchange((await provider.logIn('alice')).access_token)
    expect((await me(body.session)).invite).toMatchObject({ role: 'contractor' })
  })

  test('does not let an unverified email find an invite', async () => {
    const employer = await service.wallet(accountOf(9_101))
    await service.ask('POST', '/contractors', { session: employer, body: { name: 'Bob', email: 'bob@b.example' } })
    const { body } = await exchange((await provider.logIn('bob')).access_token)
    expect(decodeJwt(body.session ?? '').email).toBeOneOf([null, undefined])
    expect((await me(body.session)).invite).toBeUndefined()
  })

  test('lets the user in without an email if its userinfo refuses the token', async () => {
    const { status, body } = await exchange((await provider.logIn('carol')).access_token)
    expect(status).toBe(200)
    expect(decodeJwt(body.session ?? '').email).toBeOneOf([null, undefined])
    expect(logged.some((line) => line.includes('userinfo responded with 401'))).toBe(true)
  })

  test('issues ID tokens, which are not accepted as access tokens', async () => {
    const { status, body } = await exchange((await provider.logIn('alice')).id_token)
    expect([status, body]).toEqual([401, { error: 'invalid identity token', code: 'identity-token-invalid' }])
  })

  test('rotates its keys, after which tokens signed with the old one are invalid', async () => {
    const old = (await provider.logIn('alice')).access_token
    expect((await exchange(old)).status).toBe(200)
    await provider.rotate()
    const fresh = (await provider.logIn('alice')).access_token
    expect(decodeProtectedHeader(fresh).kid).not.toBe(decodeProtectedHeader(old).kid)
    // jose refetches keys for an unknown key only after half a minute.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 })
    expect((await exchange(fresh)).status).toBe(200)
    expect((await exchange(old)).status).toBe(401)
  })

  test('admits a token with a cached key while it is down, and responds 503, later 401, for an unknown key', async () => {
    const { access_token } = await provider.logIn('alice')
    expect((await exchange(access_token)).status).toBe(200)
    await provider.stop()
    expect((await exchange(access_token)).status).toBe(200)
    const stranger = await (await providerKey('strange')).sign({ ...decodeJwt(access_token) })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 62_000 })
    expect((await exchange(stranger)).status).toBe(503)
    await provider.start()
    expect((await exchange(stranger)).status).toBe(401)
  })
})

test('ends the session with the provider’s token', async () => {
  const { access_token } = await provider.logIn('alice')
  const { body } = await exchange(access_token)
  expect(decodeJwt(body.session ?? '').exp).toBe(decodeJwt(access_token).exp)
})

describe('a provider without discovery (Privy)', () => {
  test('admits a user with an access token, and not with an identity token', async () => {
    const keys = await startTestProvider()
    const key = await providerKey('privy')
    keys.documents.set('/jwks.json', { body: { keys: [key.jwk] } })
    const privy = await openTestService(
      atNoon({
        IDP_ISSUER: 'privy.io',
        IDP_AUDIENCE: 'app-id',
        IDP_JWKS_URL: `${keys.origin}/jwks.json`,
        IDP_ALGS: 'ES256',
      }),
    )
    privy.clock.now = new Date()
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: 'privy.io', aud: 'app-id', sub: 'did:privy:cm123', sid: 's1', iat: now, exp: now + 3600 }
    const { status, body } = await exchange(await key.sign(claims, { typ: 'JWT' }))
    expect([status, body]).toEqual([200, { session: expect.any(String), kind: 'idp', sub: 'did:privy:cm123' }])
    expect(await me(body.session)).toMatchObject({ kind: 'idp', sub: 'did:privy:cm123', roles: ['employer'] })
    const linked = JSON.stringify([{ type: 'email', address: 'a@b.example', lv: now }])
    const identity = await key.sign({ ...claims, sid: undefined, linked_accounts: linked }, { typ: 'JWT' })
    expect((await exchange(identity)).status).toBe(401)
    await privy.close()
    await keys.close()
  })
})
