import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, exportSPKI, SignJWT, UnsecuredJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { type Identity, mintSession, verifySession } from '#lib/auth/session.ts'
import { readBearer } from '#lib/http/bearer.ts'
import { later, NOW, NOW_SECONDS, pair, sessions } from './challenges.ts'

const account = pair('alice').publicKey()
const wallet: Identity = { kind: 'ledger', sub: account }
const user: Identity = { kind: 'idp', sub: 'did:privy:abc', issuer: 'https://id.example/', email: 'a@b.example' }
const invalid = { code: 'bearer-invalid', message: 'invalid session token' }
const verify = (token: string, now = NOW) => verifySession(sessions, token, now)

describe('mint', () => {
  test('gives a wallet session only the claims that it needs', async () => {
    const token = await mintSession(sessions, { ...wallet, id: 'the-id' }, NOW)
    expect(decodeProtectedHeader(token)).toEqual({ alg: 'HS256', typ: 'session+jwt' })
    expect(decodeJwt(token)).toEqual({
      kind: 'ledger',
      sub: account,
      iss: sessions.issuer,
      aud: sessions.audience,
      jti: 'the-id',
      iat: NOW_SECONDS,
      exp: NOW_SECONDS + 3600,
    })
  })

  test('generates an id for a session minted without one', async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => decodeJwt(await mintSession(sessions, wallet, NOW)).jti))
    expect(new Set(ids).size).toBe(3)
  })

  test.each([
    [60, 60],
    [3600, 3600],
    [100_000, 3600],
  ])('ends a session of at most %i s after %i', async (allowed, actual) => {
    const token = await mintSession(sessions, { ...user, notAfter: later(allowed) }, NOW)
    expect(decodeJwt(token).exp).toBe(NOW_SECONDS + actual)
  })

  test('neither signs nor verifies with a short secret', async () => {
    const weak = { ...sessions, secret: 'x'.repeat(31) }
    await expect(mintSession(weak, wallet, NOW)).rejects.toThrow(RangeError)
    await expect(verifySession(weak, await mintSession(sessions, wallet, NOW), NOW)).rejects.toThrow(RangeError)
  })
})

describe('verify', () => {
  test.each([wallet, user, { kind: 'idp', sub: 'no-email', issuer: 'x' }] satisfies Identity[])(
    'returns the minted claims: %j',
    async (identity) => {
      const token = await mintSession(sessions, { ...identity, id: 'i' }, NOW)
      expect(await verify(token)).toEqual({ ...identity, id: 'i', expiresAt: later(3600) })
    },
  )

  test('accepts a session until its last second, and no longer', async () => {
    const token = await mintSession(sessions, wallet, NOW)
    expect(await verify(token, later(3599))).toMatchObject(wallet)
    await expect(verify(token, later(3600))).rejects.toMatchObject({
      code: 'session-expired',
      message: 'session expired',
    })
  })

  test('rejects a session of a service with another secret, issuer or audience', async () => {
    const token = await mintSession(sessions, wallet, NOW)
    expect(await verify(token)).toMatchObject(wallet)
    for (const other of [
      { secret: 'x'.repeat(32) },
      { issuer: 'https://other.example' },
      { audience: 'https://x.example' },
    ]) {
      await expect(verifySession({ ...sessions, ...other }, token, NOW)).rejects.toMatchObject(invalid)
    }
  })

  test('rejects a token with one changed letter in its signature', async () => {
    const token = await mintSession(sessions, wallet, NOW)
    expect(await verify(token)).toMatchObject(wallet)
    const swapped = token.at(-10) === 'A' ? 'B' : 'A'
    await expect(verify(`${token.slice(0, -10)}${swapped}${token.slice(-9)}`)).rejects.toMatchObject(invalid)
  })

  test('does not treat an idp user whose sub is a G-address as a ledger user', async () => {
    const token = await mintSession(sessions, { kind: 'idp', sub: account, issuer: 'https://id.example/' }, NOW)
    expect((await verify(token)).kind).toBe('idp')
  })

  const claims = { kind: 'ledger', sub: account, jti: 'i', iss: sessions.issuer, aud: sessions.audience }
  const times = { iat: NOW_SECONDS, exp: NOW_SECONDS + 60 }
  const header = { alg: 'HS256', typ: 'session+jwt' }
  const secret = new TextEncoder().encode(sessions.secret)
  const sign = (payload: object, head: object = header, key: Uint8Array = secret) =>
    new SignJWT({ ...payload }).setProtectedHeader({ ...header, ...head }).sign(key)
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

  test('accepts the valid fixture that the table below perturbs', async () => {
    expect(await verify(await sign({ ...claims, ...times }))).toMatchObject({ sub: account })
  })

  const bad: [string, () => Promise<string> | string][] = [
    ['alg none', () => new UnsecuredJWT({ ...claims, ...times }).encode()],
    [
      'RS256',
      () => new SignJWT({ ...claims, ...times }).setProtectedHeader({ ...header, alg: 'RS256' }).sign(rsa.privateKey),
    ],
    [
      'HS256 keyed with a public key',
      async () => sign({ ...claims, ...times }, {}, new TextEncoder().encode(await exportSPKI(rsa.publicKey))),
    ],
    [
      'HS512 with the service’s secret',
      () => sign({ ...claims, ...times }, { alg: 'HS512' }, Buffer.concat([secret, secret]).subarray(0, secret.length)),
    ],
    ['another secret', () => sign({ ...claims, ...times }, {}, new Uint8Array(32))],
    ['another typ', () => sign({ ...claims, ...times }, { typ: 'JWT' })],
    ['no typ', () => sign({ ...claims, ...times }, { typ: undefined })],
    ['another audience', () => sign({ ...claims, ...times, aud: 'https://other.example' })],
    ['another issuer', () => sign({ ...claims, ...times, iss: 'https://other.example' })],
    ...['iss', 'aud', 'sub', 'kind', 'jti', 'iat', 'exp'].map((name): [string, () => Promise<string>] => [
      `no ${name}`,
      () => sign({ ...claims, ...times, [name]: undefined }),
    ]),
    ['an expired one of another audience', () => sign({ ...claims, iat: 1, exp: 2, aud: 'x' })],
    ['an unknown kind', () => sign({ ...claims, ...times, kind: 'operator' })],
    ['kind idp without its issuer', () => sign({ ...claims, ...times, kind: 'idp' })],
    ['kind ledger with an idp sub', () => sign({ ...claims, ...times, sub: 'did:privy:abc' })],
    ['kind ledger with a muxed account', () => sign({ ...claims, ...times, sub: `M${account.slice(1)}` })],
    ['an empty sub', () => sign({ ...claims, ...times, sub: '', kind: 'idp', idp: 'x' })],
    ['a non-numeric exp', () => sign({ ...claims, ...times, exp: '9999999999' })],
    ['not yet valid', () => sign({ ...claims, ...times, nbf: NOW_SECONDS + 30 })],
    ['an unknown critical header', () => tamper({ crit: ['x'], x: 1 })],
    ['a kind swapped in the payload', () => swapKind()],
    ['garbage', () => 'garbage'],
    ['three dots', () => '...'],
    ['empty parts', () => '..'],
    ['16 KB', () => 'a'.repeat(16_384)],
  ]
  test.each(bad)('refuses %s', async (_name, token) => {
    await expect(verify(await token())).rejects.toMatchObject(invalid)
  })

  async function tamper(head: object): Promise<string> {
    const [, payload, signature] = (await sign({ ...claims, ...times })).split('.')
    return [Buffer.from(JSON.stringify({ ...header, ...head })).toString('base64url'), payload, signature].join('.')
  }

  async function swapKind(): Promise<string> {
    const [head, , signature] = (await mintSession(sessions, user, NOW)).split('.')
    const payload = { ...claims, ...times, kind: 'ledger', sub: account }
    return [head, Buffer.from(JSON.stringify(payload)).toString('base64url'), signature].join('.')
  }
})

describe('caller', () => {
  const call = async (authorization?: string) => {
    const request = new Request('http://x/', authorization === undefined ? {} : { headers: { authorization } })
    return await verifySession(sessions, readBearer(request), NOW)
  }

  test.each(['Bearer', 'bearer', 'BEARER'])('%s', async (scheme) => {
    expect(await call(`${scheme} ${await mintSession(sessions, wallet, NOW)}`)).toMatchObject(wallet)
  })

  test.each([undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'token'])('missing: %s', async (header) => {
    await expect(call(header)).rejects.toMatchObject({ code: 'bearer-missing', message: 'missing bearer token' })
  })

  test.each(['Bearer x', 'Bearer a b', 'Bearer a.b.c, Bearer d.e.f'])('invalid: %s', async (header) => {
    await expect(call(header)).rejects.toMatchObject(invalid)
  })

  test('treats a token under a scheme other than Bearer as missing', async () => {
    const token = await mintSession(sessions, wallet, NOW)
    await expect(call(`Token ${token}`)).rejects.toMatchObject({ message: 'missing bearer token' })
  })
})
