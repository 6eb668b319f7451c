import { decodeJwt, exportJWK, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ProviderSettings } from '#lib/auth/oidc/provider.ts'
import { requireProvider, signInWithProvider, verifyAccessToken } from '#lib/auth/oidc/sign-in.ts'
import { verifySession } from '#lib/auth/session.ts'
import { later, NOW, NOW_SECONDS, pair, sessions } from './challenges.ts'
import { type ProviderKey, providerKey, startTestProvider, type TestProvider } from './provider-server.ts'

let server: TestProvider
let key: ProviderKey
let rsa: ProviderKey
let tenant = 0
let provider: ProviderSettings

beforeAll(async () => {
  server = await startTestProvider()
  key = await providerKey('k1')
  rsa = await providerKey('k2', 'RS256')
})
afterAll(() => server.close())
afterEach(() => {
  vi.useRealTimers()
})

/** Each test has a separate tenant, since keys are cached until the process ends. */
beforeEach(() => {
  tenant += 1
  const issuer = `${server.origin}/tenant-${tenant}`
  provider = { issuer, audience: 'https://api.pay.example', algorithms: ['RS256', 'ES256'], emailClaim: 'email' }
  publish({ issuer, jwks_uri: `${issuer}/jwks` }, [key.jwk, rsa.jwk])
  server.requests.length = 0
})

function publish(discovery: object, keys: object[]): void {
  server.documents.set(`/tenant-${tenant}/.well-known/openid-configuration`, { body: discovery })
  server.documents.set(`/tenant-${tenant}/jwks`, { body: { keys } })
}

const claims = () => ({
  iss: provider.issuer,
  aud: provider.audience,
  sub: 'user-1',
  iat: NOW_SECONDS - 10,
  exp: NOW_SECONDS + 600,
  email: 'ann@example.com',
  email_verified: true,
})
const signIn = (token: string, now = NOW) => signInWithProvider({ provider, sessions }, token, now)
const invalid = { code: 'identity-token-invalid', message: 'invalid identity token' }
const unavailable = { code: 'unavailable', message: 'the identity provider cannot be reached', retryAfter: 10 }

describe('a valid token', () => {
  test('starts a session that ends with the token', async () => {
    const answer = await signIn(await key.sign(claims()))
    expect(answer).toEqual({ session: expect.any(String), kind: 'idp', sub: 'user-1' })
    expect(await verifySession(sessions, answer.session, NOW)).toEqual({
      kind: 'idp',
      sub: 'user-1',
      issuer: provider.issuer,
      email: 'ann@example.com',
      id: expect.any(String),
      expiresAt: later(600),
    })
  })

  test('starts a session of SESSION_TTL if the token is valid for longer', async () => {
    const { session } = await signIn(await key.sign({ ...claims(), exp: NOW_SECONDS + 86_400 }))
    expect(decodeJwt(session).exp).toBe(NOW_SECONDS + 3600)
  })

  test('causes one discovery request and one request for keys', async () => {
    await Promise.all([signIn(await key.sign(claims())), signIn(await rsa.sign(claims()))])
    await signIn(await key.sign(claims()))
    expect(server.requests.toSorted()).toEqual([
      `/tenant-${tenant}/.well-known/openid-configuration`,
      `/tenant-${tenant}/jwks`,
    ])
  })

  test('may have several audiences, and a typ of JWT or none', async () => {
    expect(await signIn(await key.sign({ ...claims(), aud: ['x', provider.audience] }))).toBeDefined()
    expect(await signIn(await key.sign(claims(), { typ: 'JWT' }))).toBeDefined()
    expect(await signIn(await key.sign(claims(), { typ: undefined }))).toBeDefined()
    // Media types have no case.
    expect(await signIn(await key.sign(claims(), { typ: 'AT+JWT' }))).toBeDefined()
    expect(await signIn(await key.sign(claims(), { typ: 'application/at+JWT' }))).toBeDefined()
  })

  test.each([
    ['without a kid', (jwk: JWK) => [{ ...jwk, kid: undefined }]],
    [
      'without a kid, beside another one',
      (jwk: JWK, other: JWK) => [other, jwk].map((one) => ({ ...one, kid: undefined })),
    ],
    ['twice', (jwk: JWK) => [jwk, jwk]],
    ['twice, once with another key', (jwk: JWK, other: JWK) => [{ ...other, kid: jwk.kid }, jwk]],
  ])('may be signed with a key that the provider lists %s', async (_, list) => {
    const other = await providerKey('k7')
    publish({ issuer: provider.issuer, jwks_uri: `${provider.issuer}/jwks` }, list(key.jwk, other.jwk) as JWK[])
    expect(await signIn(await key.sign(claims()))).toMatchObject({ sub: 'user-1' })
    const stranger = await providerKey(String(key.jwk.kid))
    await expect(signIn(await stranger.sign(claims()))).rejects.toMatchObject(invalid)
  })

  test('may come from a slightly fast clock', async () => {
    expect(await signIn(await key.sign({ ...claims(), nbf: NOW_SECONDS + 29 }))).toBeDefined()
    await expect(signIn(await key.sign({ ...claims(), nbf: NOW_SECONDS + 31 }))).rejects.toMatchObject(invalid)
  })

  test('may have an issuer that ends in a slash', async () => {
    const issuer = `${provider.issuer}/`
    publish({ issuer, jwks_uri: `${provider.issuer}/jwks` }, [key.jwk])
    provider = { ...provider, issuer }
    expect(await signIn(await key.sign(claims()))).toMatchObject({ sub: 'user-1' })
  })

  test('may have a plain name as issuer, with configured keys (Privy)', async () => {
    const jwksUrl = `${provider.issuer}/jwks`
    provider = { ...provider, issuer: 'privy.io', audience: 'app-id', jwksUrl, algorithms: ['ES256'] }
    const access = { ...claims(), sid: 'session', sub: 'did:privy:abc', email: undefined, email_verified: undefined }
    expect(await signIn(await key.sign(access, { typ: 'JWT' }))).toMatchObject({ kind: 'idp', sub: 'did:privy:abc' })
    expect(server.requests).toEqual([`/tenant-${tenant}/jwks`])
    const identity = { ...access, sid: undefined, linked_accounts: '[]' }
    await expect(signIn(await key.sign(identity, { typ: 'JWT' }))).rejects.toMatchObject(invalid)
  })

  test('does not start a wallet session even if its sub is an account', async () => {
    const sub = pair('alice').publicKey()
    const { session } = await signIn(await key.sign({ ...claims(), sub }))
    expect(await verifySession(sessions, session, NOW)).toMatchObject({ kind: 'idp', sub })
  })
})

describe('email', () => {
  const emailOf = async (more: object, settings: Partial<ProviderSettings> = {}) => {
    const token = await key.sign({ ...claims(), email: undefined, email_verified: undefined, ...more })
    return (await verifyAccessToken({ ...provider, ...settings }, token, NOW)).identity.email
  }
  const custom = { emailClaim: 'https://pay.example/email' }

  test.each<[string, object, Partial<ProviderSettings>, string | null | undefined]>([
    ['verified', { email: 'a@b.example', email_verified: true }, {}, 'a@b.example'],
    ['missing', {}, {}, undefined],
    ['not verified', { email: 'a@b.example', email_verified: false }, {}, null],
    ['nothing said', { email: 'a@b.example' }, {}, null],
    ['verified as a string', { email: 'a@b.example', email_verified: 'true' }, {}, null],
    ['verified as a number', { email: 'a@b.example', email_verified: 1 }, {}, null],
    ['no address', { email: 'ann', email_verified: true }, {}, null],
    ['two addresses', { email: 'a@b.example,c@d.example', email_verified: true }, {}, null],
    ['a line break', { email: 'a@b.example\nbcc: x', email_verified: true }, {}, null],
    ['a Kelvin sign, which NFKC turns into a K', { email: '\u212aen@b.example', email_verified: true }, {}, null],
    ['full-width letters', { email: 'ａnn@b.example', email_verified: true }, {}, null],
    ['a list', { email: ['a@b.example'], email_verified: true }, {}, null],
    ['too long', { email: `${'a'.repeat(250)}@b.example`, email_verified: true }, {}, null],
    ['a custom claim', { [custom.emailClaim]: 'a@b.example', email_verified: true }, custom, 'a@b.example'],
    [
      'a custom claim with its own verified flag',
      { [custom.emailClaim]: 'a@b.example', [`${custom.emailClaim}_verified`]: true },
      custom,
      'a@b.example',
    ],
    [
      'a custom claim whose own flag is false',
      { [custom.emailClaim]: 'a@b.example', [`${custom.emailClaim}_verified`]: false, email_verified: true },
      custom,
      null,
    ],
    [
      'the standard claim while a custom one is configured',
      { email: 'a@b.example', email_verified: true },
      custom,
      undefined,
    ],
  ])('%s', async (_name, more, settings, expected) => {
    expect(await emailOf(more, settings)).toBe(expected)
  })
})

describe('refused with 401', () => {
  const sign = (more: object, header?: object) => key.sign({ ...claims(), ...more }, header)
  const bad: [string, () => Promise<string> | string][] = [
    ['another audience (an ID token)', () => sign({ aud: 'web' }, { typ: 'JWT' })],
    ['another issuer', () => sign({ iss: 'https://evil.example' })],
    ['the issuer with a slash', () => sign({ iss: `${provider.issuer}/` })],
    ['a logout token', () => sign({}, { typ: 'logout+jwt' })],
    ['a session of this service', () => sign({}, { typ: 'session+jwt' })],
    ...['iss', 'aud', 'sub', 'iat', 'exp'].map((name): [string, () => Promise<string>] => [
      `no ${name}`,
      () => sign({ [name]: undefined }),
    ]),
    ['an empty sub', () => sign({ sub: '' })],
    ['a sub that is not a string', () => sign({ sub: 7 })],
    ['a sub with a NUL', () => sign({ sub: 'a\u0000b' })],
    ['a sub of 256 characters', () => sign({ sub: 'a'.repeat(256) })],
    ['expired', () => sign({ exp: NOW_SECONDS - 60 })],
    ['expired within the tolerance', () => sign({ exp: NOW_SECONDS - 2 })],
    ['at its expiry', () => sign({ exp: NOW_SECONDS })],
    ['alg none', () => new UnsecuredJWT({ ...claims() }).encode()],
    ['an algorithm that is not on the list', async () => (await providerKey('k1', 'ES384')).sign(claims())],
    ['a key that the provider does not have', async () => (await providerKey('k1')).sign(claims())],
    ['a kid that the provider does not have', async () => (await providerKey('k9')).sign(claims())],
    ['HS256 keyed with the public key', () => withSecret(JSON.stringify(key.jwk))],
    ['HS256 keyed with the service’s secret', () => withSecret(sessions.secret)],
    ['an embedded key in the header', () => withOwnKey()],
    [
      'a tampered payload',
      async () =>
        (await sign({})).replace(
          /\.[^.]+\./,
          `.${btoa(JSON.stringify({ ...claims(), sub: 'admin' })).replace(/=+$/, '')}.`,
        ),
    ],
    ['garbage', () => 'garbage'],
    ['more than 8 KB', () => sign({ filler: 'x'.repeat(8192) })],
  ]
  test.each(bad)('%s', async (_name, token) => {
    await expect(signIn(await token())).rejects.toMatchObject(invalid)
  })

  test('a key of the provider with an algorithm that is not allowed', async () => {
    provider = { ...provider, algorithms: ['RS256'] }
    await expect(signIn(await key.sign(claims()))).rejects.toMatchObject(invalid)
    expect(await signIn(await rsa.sign(claims()))).toBeDefined()
  })

  test('HS256 even if the configuration allows it', async () => {
    provider = { ...provider, algorithms: ['HS256', 'ES256'] }
    await expect(signIn(await withSecret(JSON.stringify(key.jwk)))).rejects.toMatchObject(invalid)
    expect(await signIn(await key.sign(claims()))).toBeDefined()
  })

  const withSecret = (secret: string) =>
    new SignJWT({ ...claims() })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: 'k1' })
      .sign(new TextEncoder().encode(secret))

  async function withOwnKey(): Promise<string> {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jku = `${server.origin}/evil`
    server.documents.set('/evil', { body: { keys: [{ ...(await exportJWK(publicKey)), kid: 'k1' }] } })
    return await new SignJWT({ ...claims() })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1', jku, jwk: await exportJWK(publicKey) })
      .sign(privateKey)
  }
})

describe('responds 503 while the provider is unreachable, and recovers afterwards', () => {
  const documented = () => ({ issuer: provider.issuer, jwks_uri: `${provider.issuer}/jwks` })
  const filler = 'x'.repeat(600_000)
  const answers: [string, (path: string) => void][] = [
    ['are missing', (path) => server.documents.delete(path)],
    ['answer 500', (path) => server.documents.set(path, { status: 500 })],
    ['are not JSON', (path) => server.documents.set(path, { body: '<html>' })],
    ['are a list', (path) => server.documents.set(path, { body: [] })],
    ['are null', (path) => server.documents.set(path, { body: 'null' })],
    ['redirect', (path) => server.documents.set(path, { status: 302, location: '/elsewhere' })],
    ['are endless', (path) => server.documents.set(path, { body: { ...documented(), keys: [key.jwk], filler } })],
  ]
  const at = {
    discovery: () => `/tenant-${tenant}/.well-known/openid-configuration`,
    keys: () => `/tenant-${tenant}/jwks`,
  }
  const discovered = (change: object) => () =>
    server.documents.set(at.discovery(), { body: { ...documented(), ...change } })
  const faults: [string, () => void][] = [
    ...Object.entries(at).flatMap(([what, path]) =>
      answers.map(([how, spoil]): [string, () => void] => [`${what} ${how}`, () => spoil(path())]),
    ),
    ['discovery has another issuer', () => discovered({ issuer: `${provider.issuer}/` })()],
    ['discovery has no keys', discovered({ jwks_uri: undefined })],
    ['keys over plain http', discovered({ jwks_uri: 'http://id.example/jwks' })],
    ['keys in a file', discovered({ jwks_uri: 'file:///etc/passwd' })],
  ]
  test.each(faults)('%s', async (_name, spoil) => {
    spoil()
    const token = await key.sign(claims())
    await expect(signIn(token)).rejects.toMatchObject(unavailable)
    publish(documented(), [key.jwk])
    expect(await signIn(token)).toMatchObject({ sub: 'user-1' })
  })

  test('when nothing listens at the address of the provider', async () => {
    const gone = await startTestProvider()
    await gone.close()
    provider = { ...provider, issuer: gone.origin }
    await expect(signIn(await key.sign(claims()))).rejects.toMatchObject(unavailable)
  })

  test('when the issuer is not a URL and no keys are configured', async () => {
    provider = { ...provider, issuer: 'privy.io' }
    await expect(signIn(await key.sign(claims()))).rejects.toMatchObject(unavailable)
  })
})

test('does not fetch the keys again for every unknown key', async () => {
  await signIn(await key.sign(claims()))
  const fresh = await providerKey('k3')
  publish({ issuer: provider.issuer, jwks_uri: `${provider.issuer}/jwks` }, [key.jwk, fresh.jwk])
  for (let attempt = 0; attempt < 5; attempt++) {
    await expect(signIn(await fresh.sign(claims()))).rejects.toMatchObject(invalid)
  }
  expect(server.requests.filter((path) => path.endsWith('/jwks'))).toHaveLength(1)
})

describe('an hour after discovery', () => {
  const HOUR_MS = 60 * 60_000
  const keyFetches = () => server.requests.filter((path) => path.includes('jwks'))

  test('finds keys at a new address, and refuses tokens signed by those at the old one', async () => {
    const began = Date.now()
    vi.useFakeTimers({ toFake: ['Date'], now: began })
    const { issuer } = provider
    const moved = await providerKey('moved')
    const before = await key.sign(claims())
    await signIn(before)
    publish({ issuer, jwks_uri: `${issuer}/moved-jwks` }, [key.jwk])
    server.documents.set(`/tenant-${tenant}/moved-jwks`, { body: { keys: [moved.jwk] } })
    await expect(signIn(await moved.sign(claims()))).rejects.toMatchObject(invalid)
    vi.setSystemTime(began + HOUR_MS)
    expect(await signIn(await moved.sign(claims()))).toMatchObject({ sub: 'user-1' })
    await expect(signIn(before)).rejects.toMatchObject(invalid)
  })

  test('waits between two fetches if the address of the keys has not changed', async () => {
    const began = Date.now()
    vi.useFakeTimers({ toFake: ['Date'], now: began })
    await signIn(await key.sign(claims()))
    vi.setSystemTime(began + HOUR_MS - 1)
    // jose refetches keys that are older than ten minutes.
    await signIn(await key.sign(claims()))
    expect(keyFetches()).toHaveLength(2)
    vi.setSystemTime(began + HOUR_MS)
    const unknown = await providerKey('unknown')
    await expect(signIn(await unknown.sign(claims()))).rejects.toMatchObject(invalid)
    expect(server.requests.filter((path) => path.endsWith('openid-configuration'))).toHaveLength(2)
    expect(keyFetches()).toHaveLength(2)
  })

  test('uses the cached endpoints while discovery fails, and retries after a minute', async () => {
    const began = Date.now()
    vi.useFakeTimers({ toFake: ['Date'], now: began })
    const token = await key.sign(claims())
    await signIn(token)
    const path = `/tenant-${tenant}/.well-known/openid-configuration`
    const requests = () => server.requests.filter((each) => each === path)
    server.documents.set(path, { status: 503 })
    vi.setSystemTime(began + HOUR_MS)
    for (const times of [2, 2]) {
      expect(await signIn(token)).toMatchObject({ sub: 'user-1' })
      expect(requests()).toHaveLength(times)
    }
    const moved = await providerKey('moved')
    publish({ issuer: provider.issuer, jwks_uri: `${provider.issuer}/moved-jwks` }, [key.jwk])
    server.documents.set(`/tenant-${tenant}/moved-jwks`, { body: { keys: [moved.jwk] } })
    vi.setSystemTime(began + HOUR_MS + 60_000)
    expect(await signIn(await moved.sign(claims()))).toMatchObject({ sub: 'user-1' })
    expect(requests()).toHaveLength(3)
  })
})

test('responds 501 without a provider', () => {
  expect(() => requireProvider(undefined)).toThrow(expect.objectContaining({ code: 'idp-not-configured' }))
  expect(requireProvider(provider)).toBe(provider)
})
