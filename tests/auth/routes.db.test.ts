import { Networks, Transaction, WebAuth } from '@stellar/stellar-sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as idp from '#app/api/auth/idp/route.ts'
import * as challenge from '#app/api/auth/sep10/challenge/route.ts'
import * as verify from '#app/api/auth/sep10/verify/route.ts'
import * as email from '#app/invite/email/route.ts'
import { type SessionSettings, verifySession } from '#lib/auth/session.ts'
import { generateIdentityKey, identityIssuer } from '#lib/devnet/devnet.ts'
import { accountEntry, type FakeRpc, signerKey } from '../support/fake-rpc.ts'
import { type LocalServer, serveLocally } from '../support/local-server.ts'
import { openTestService, type TestService } from '../support/test-service.ts'
import { pair } from './challenges.ts'

const [alice, bob] = [pair('alice'), pair('bob')]
const address = alice.publicKey()
let listener: LocalServer
let service: TestService<'fake'>
let fake: FakeRpc
let issuer: string

beforeAll(async () => {
  const key = await generateIdentityKey()
  listener = await serveLocally((...args) => identityIssuer({ issuer, audience: 'payroll', key })(...args))
  issuer = `${listener.url}/idp`
  service = await openTestService({
    ledger: 'fake',
    variables: {
      PUBLIC_URL: 'https://pay.example:8443',
      STELLAR_NETWORK: 'testnet',
      SEP10_SEED: pair('route server').secret(),
      IDP_ISSUER: issuer,
      IDP_AUDIENCE: 'payroll',
    },
  })
  fake = service.ledger
})
afterAll(async () => {
  await service?.close()
  await listener.close()
})
beforeEach(() => {
  fake.accounts.clear()
  fake.fault = undefined
})

const origin = 'https://elsewhere.example/api/auth'
const ask = (query: string, headers: Record<string, string> = {}) =>
  challenge.GET(new Request(`${origin}/sep10/challenge${query}`, { headers }), {})
const post = (handler: typeof verify.POST, path: string, body: string, type = 'application/json', headers = {}) =>
  handler(new Request(`${origin}/${path}`, { method: 'POST', headers: { 'content-type': type, ...headers }, body }), {})
const present = (body: unknown, type?: string) =>
  post(verify.POST, 'sep10/verify', typeof body === 'string' ? body : JSON.stringify(body), type)
const exchange = (body: unknown) => post(idp.POST, 'idp', JSON.stringify(body))

async function signed(...signers: (typeof alice)[]): Promise<string> {
  const { transaction } = (await (await ask(`?account=${address}`)).json()) as { transaction: string }
  const parsed = new Transaction(transaction, Networks.TESTNET)
  parsed.sign(...signers)
  return parsed.toXdr()
}

describe('GET /auth/sep10/challenge', () => {
  test('uses the domains of PUBLIC_URL in a challenge, not those of the request', async () => {
    const response = await ask(`?account=${address}&client_domain=wallet.example`, { host: 'evil.example' })
    expect(response.status).toBe(200)
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    const body = (await response.json()) as { transaction: string; network_passphrase: string }
    expect(Object.keys(body)).toEqual(['transaction', 'network_passphrase'])
    expect(body.network_passphrase).toBe(Networks.TESTNET)
    const server = pair('route server').publicKey()
    const read = WebAuth.readChallengeTx(
      body.transaction,
      server,
      Networks.TESTNET,
      'pay.example:8443',
      'pay.example:8443',
    )
    expect(read.clientAccountID).toBe(address)
  })

  test('responds 400 to an account that cannot have a challenge', async () => {
    const response = await ask(`?account=${address}&home_domain=evil.example`)
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ error: expect.stringContaining('home_domain'), code: expect.any(String) })
  })
})

describe('POST /auth/sep10/verify', () => {
  test('returns a session once, and 400 for the same challenge again', async () => {
    const transaction = await signed(alice)
    const response = await present({ transaction, unknown: 'ignored' })
    expect(response.status).toBe(200)
    const body = (await response.json()) as { session: string }
    expect(body).toEqual({ session: expect.any(String), kind: 'ledger', sub: address })
    expect(await verifySession(service.running.settings.sessions, body.session, new Date())).toMatchObject({
      sub: address,
    })
    const again = await present({ transaction })
    expect(again.status).toBe(400)
    expect(await again.json()).toEqual({ error: 'invalid challenge: it has already been used', code: 'challenge-used' })
  })

  test('responds 200 to one of twenty concurrent requests, and 400 to the others', async () => {
    const transaction = await signed(alice)
    const answers = await Promise.all(Array.from({ length: 20 }, () => present({ transaction })))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array<number>(19).fill(400)])
  })

  test('responds 503 while the ledger is unreachable, and accepts the challenge afterwards', async () => {
    const entry = accountEntry(address, { thresholds: [1, 2, 2, 2], signers: [{ key: signerKey(bob), weight: 1 }] })
    fake.accounts.set(address, entry)
    const transaction = await signed(alice, bob)
    fake.fault = 'http-503'
    const refused = await present({ transaction })
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await refused.json()).toEqual({ error: 'the ledger cannot be reached', code: 'unavailable' })
    fake.fault = undefined
    expect((await present({ transaction: await signed(alice) })).status).toBe(400)
    expect((await present({ transaction })).status).toBe(200)
  })

  test.each<[string, unknown, number, string]>([
    ['nothing', '', 400, 'transaction required'],
    ['{}', {}, 400, 'transaction required'],
    ['an empty text', { transaction: '' }, 400, 'transaction required'],
    ['garbage', { transaction: 'garbage' }, 400, 'invalid challenge'],
    ['a NUL', { transaction: '\u0000' }, 400, 'invalid challenge'],
    ['9 KB', { transaction: 'A'.repeat(9216) }, 400, 'invalid challenge: it is larger'],
    ['no JSON', '{', 400, 'JSON'],
    ['257 KiB', { transaction: 'A'.repeat(257 * 1024) }, 413, '256 KiB'],
  ])('%s', async (_name, body, status, message) => {
    const response = await present(body)
    expect(response.status).toBe(status)
    expect(await response.json()).toEqual({ error: expect.stringContaining(message), code: expect.any(String) })
  })

  test.each([
    [{}, 'transaction-required'],
    [{ transaction: '' }, 'transaction-invalid'],
    [{ transaction: 5 }, 'transaction-invalid'],
  ])('responds to %j with %s', async (body, code) => {
    expect(await (await present(body)).json()).toEqual({ error: 'transaction required', code })
  })

  test('responds 415 to another content type', async () => {
    expect((await present('transaction=x', 'text/plain')).status).toBe(415)
  })
})

describe('POST /auth/idp', () => {
  const tokenFor = async (request: object) => {
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(`${issuer}/token`, { method: 'POST', headers, body: JSON.stringify(request) })
    return ((await response.json()) as { access_token: string }).access_token
  }

  test('returns a session for a token of the provider', async () => {
    const response = await exchange({ token: await tokenFor({ sub: 'ann', email: 'ann@example.com' }) })
    expect(response.status).toBe(200)
    const body = (await response.json()) as { session: string }
    expect(body).toEqual({ session: expect.any(String), kind: 'idp', sub: 'ann' })
    const session = await verifySession(service.running.settings.sessions, body.session, new Date())
    expect(session).toMatchObject({ kind: 'idp', sub: 'ann', issuer, email: 'ann@example.com' })
  })

  test('responds 401 to an invalid token', async () => {
    const response = await exchange({ token: 'a.b.c' })
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    expect(await response.json()).toEqual({ error: 'invalid identity token', code: 'identity-token-invalid' })
  })

  test.each([
    [{}, 'token-required'],
    [{ token: '' }, 'token-invalid'],
    [{ token: 7 }, 'token-invalid'],
    [{ token: null }, 'token-invalid'],
    [{ token: ['x'] }, 'token-invalid'],
  ])('responds 400 to %j with %s', async (body, code) => {
    const response = await exchange(body)
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ error: 'token required', code })
  })

  test('responds 501 without a provider, even to an empty body', async () => {
    await service.withVariables({ IDP_ISSUER: '', IDP_AUDIENCE: '' }, async () => {
      const response = await exchange({})
      expect(response.status).toBe(501)
      expect(await response.json()).toEqual({ error: 'no identity provider is configured', code: 'idp-not-configured' })
    })
  })

  test('responds 503 while the provider is unreachable', async () => {
    await service.withVariables({ IDP_ISSUER: 'http://127.0.0.1:9/idp' }, async () => {
      const response = await exchange({ token: await tokenFor({ sub: 'ann' }) })
      expect(response.status).toBe(503)
      expect(response.headers.get('retry-after')).toBe('10')
    })
  })
})

describe('POST /invite/email', () => {
  const signIn = (address: unknown, headers: object = { Origin: service.running.settings.publicUrl }) =>
    post(email.POST, 'email', JSON.stringify({ email: address }), 'application/json', headers)
  const withTestIssuer = <Result>(work: (sessions: SessionSettings) => Promise<Result>) =>
    service.withVariables({}, async ({ settings }) => {
      settings.testIssuer = issuer
      return await work(settings.sessions)
    })

  test.each<Record<string, string>>([{}, { Origin: 'https://evil.example' }, { Origin: 'null' }])(
    'refuses a request that no page of the service sent: %j',
    (headers) =>
      withTestIssuer(async () => {
        expect((await signIn('ada@example.com', headers)).status).toBe(403)
      }),
  )

  test.each(['ada@example.com', 'jörg@bücher.example', `${'ж'.repeat(240)}@example.com`])(
    'returns a session for %s, an email that records accept',
    (address) =>
      withTestIssuer(async (sessions) => {
        const answer = await signIn(address)
        expect(answer.status).toBe(200)
        const { session } = (await answer.json()) as { session: string }
        expect(await verifySession(sessions, session, new Date())).toMatchObject({ kind: 'idp', email: address })
      }),
  )

  test('treats an email in another case as the same user', () =>
    withTestIssuer(async (sessions) => {
      const users = ['jörg@example.com', 'JÖRG@Example.com'].map(async (address) => {
        const { session } = (await (await signIn(address)).json()) as { session: string }
        return (await verifySession(sessions, session, new Date())).sub
      })
      const [one, other] = await Promise.all(users)
      expect(one).toBe(other)
    }))

  test.each([
    undefined,
    '',
    7,
    'ada',
    'Ada <ada@example.com>',
    'ada@example.com, bob@example.com',
    'jo\u0308rg@example.com',
  ])('refuses %j', (address) => withTestIssuer(async () => expect((await signIn(address)).status).toBe(400)))
})
