import { Keypair, Networks, StrKey } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { DELETE, GET, PATCH, POST, PUT } from '#app/api/[[...path]]/route.ts'
import * as disclose from '#app/api/auditor/disclose/route.ts'
import * as health from '#app/api/health/route.ts'
import * as ready from '#app/api/ready/route.ts'
import * as withdraw from '#app/api/withdraw/route.ts'
import { mintSession } from '#lib/auth/session.ts'
import { readEnvironment } from '#lib/config/environment.ts'
import { openStore } from '#lib/db/connection.ts'
import { provideService, type Service } from '#lib/server/services.ts'
import { composeSettings } from '#lib/server/settings.ts'
import { openControlledAddresses } from '#lib/sponsor/controlled-addresses.ts'
import { openFloat, readAvailableBalance } from '#lib/sponsor/float.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { openSubmission } from '#lib/submission/submission.ts'
import { captureLog } from '../support/console.ts'
import { accountEntry, type FakeRpc, startFakeRpc } from '../support/fake-rpc.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const keypair = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7))
const address = keypair.publicKey()
const token = StrKey.encodeContract(new Uint8Array(32).fill(7))
/** Two base reserves and a hundred transfers of the highest fee, in stroops. */
const ENOUGH = 10_000_000n + 100n * 5_000_000n

const store = openStore({ directory: null })
let ledger: FakeRpc
let now: Date

beforeAll(async () => {
  ledger = await startFakeRpc({ latestLedger: 41, passphrase: Networks.TESTNET })
  await store.database()
})
afterAll(async () => {
  await ledger.close()
  await store.close()
})
beforeEach(() => {
  captureLog()
  now = NOW
  Object.assign(ledger, { closedAt: NOW.getTime() / 1000 - 3, fault: undefined, calls: 0 })
  hold(ENOUGH)
  provideService(Promise.resolve(compose()))
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** What the sponsor's account holds, in stroops; nothing: there is no such account. */
function hold(balance: bigint | undefined): void {
  ledger.accounts.clear()
  if (balance !== undefined) ledger.accounts.set(address, accountEntry(address, { balance }))
}

/** A service of its own for each test: what is known of one's readiness is not known of another's. */
function compose(variables: Record<string, string> = {}, more: Partial<Service> = {}): Service {
  const settings = composeSettings(
    readEnvironment({
      STELLAR_NETWORK: 'testnet',
      STELLAR_RPC_URL: ledger.url,
      SESSION_SECRET: 'a secret of the route tests, 32 bytes and more',
      SPONSOR_SEED: keypair.secret(),
      CONFIDENTIAL_TOKEN: token,
      ...variables,
    }),
  )
  const network = openNetwork(settings.network)
  const clock = () => now
  const submission = openSubmission({ network, database: store.database, now: clock, books: async () => undefined })
  const sponsor = settings.sponsor && {
    ...settings.sponsor,
    network,
    now: clock,
    submission,
    controlledAddresses: openControlledAddresses(settings.sponsor.rules.controlled, clock),
    readFloat: openFloat(network, address),
    readBalance: () => readAvailableBalance(network, address),
  }
  const confidentialAccounts = { network, token: settings.token }
  return {
    settings,
    network,
    database: store.database,
    confidentialAccounts,
    submission,
    sponsor,
    faucet: undefined,
    vault: undefined,
    batch: undefined,
    now: clock,
    ...more,
  }
}

const ask = (path: string, method = 'GET', headers: Record<string, string> = {}) =>
  new Request(`http://localhost:3000/api${path}`, { method, headers })
const readJson = async (response: Response) => ({ status: response.status, body: await response.json() })

describe('GET /health', () => {
  const get = async () => readJson(await health.GET(ask('/health'), {}))

  test('says what is configured', async () => {
    expect(await get()).toEqual({
      status: 200,
      body: { ok: true, network: 'testnet', idp: false, relay: false, sponsor: true },
    })
  })

  test('says what is not, and what is', async () => {
    const variables = {
      SPONSOR_SEED: '',
      STELLAR_NETWORK: 'local',
      IDP_ISSUER: 'https://login.example',
      IDP_AUDIENCE: 'us',
    }
    provideService(Promise.resolve(compose(variables)))
    expect((await get()).body).toMatchObject({ ok: true, network: 'local', idp: true, sponsor: false })
  })

  test('a sponsor is configured once it has a key, whatever it pays for', async () => {
    provideService(Promise.resolve(compose({ CONFIDENTIAL_TOKEN: '' })))
    expect((await get()).body).toMatchObject({ ok: true, sponsor: true })
  })

  test('asks neither database nor ledger', async () => {
    const database = vi.fn(store.database)
    provideService(Promise.resolve(compose({}, { database })))
    ledger.fault = 'http-503'
    expect((await get()).status).toBe(200)
    expect([database.mock.calls.length, ledger.calls]).toEqual([0, 0])
  })
})

describe('GET /ready', () => {
  const get = async () => {
    const response = await ready.GET(ask('/ready'), {})
    return { retryAfter: response.headers.get('retry-after'), ...(await readJson(response)) }
  }

  test('is 200 with a field for each part', async () => {
    expect(await get()).toEqual({
      retryAfter: null,
      status: 200,
      body: {
        ok: true,
        database: { ok: true },
        ledger: { ok: true, latestLedger: 41, age: 3 },
        sponsor: { ok: true, address, availableXlm: '50.0000000' },
        relay: { ok: true, configured: false },
      },
    })
  })

  test('is 503 while the database is away', async () => {
    const away = openStore({ url: 'postgres://postgres:postgres@127.0.0.1:1/nothing' })
    provideService(Promise.resolve(compose({}, { database: away.database })))
    expect(await get()).toMatchObject({
      retryAfter: '5',
      status: 503,
      body: {
        ok: false,
        database: { ok: false, problem: 'the database cannot be reached' },
        ledger: { ok: true },
        sponsor: { ok: true },
      },
    })
  })

  test('is 503 while the ledger is away, and says nothing of why', async () => {
    ledger.fault = 'http-503'
    expect(await get()).toEqual({
      retryAfter: '5',
      status: 503,
      body: {
        ok: false,
        database: { ok: true },
        ledger: { ok: false, problem: 'the ledger cannot be reached' },
        sponsor: { ok: false, problem: 'the sponsor cannot be looked up' },
        relay: { ok: true, configured: false },
      },
    })
  })

  test('is 503 while only the health of the ledger is not told', async () => {
    ledger.fault = (method) => (method === 'getHealth' ? 'http-503' : undefined)
    expect((await get()).body).toMatchObject({ ok: false, ledger: { ok: false }, sponsor: { ok: true } })
  })

  test.each([
    [60, 200, { ok: true, latestLedger: 41, age: 60 }],
    [61, 503, { ok: false, problem: 'the last ledger is old', latestLedger: 41, age: 61 }],
    [-30, 200, { ok: true, latestLedger: 41, age: 0 }],
  ])('a last ledger of %i seconds ago is %i', async (age, status, field) => {
    ledger.closedAt = NOW.getTime() / 1000 - age
    expect(await get()).toMatchObject({ status, body: { ledger: field } })
  })

  test.each([
    [ENOUGH - 1n, { ok: false, problem: 'the float is low', address, availableXlm: '49.9999999' }],
    [undefined, { ok: false, problem: 'the float is low', address, availableXlm: '0.0000000' }],
  ])('a sponsor with %s stroops is short', async (balance, field) => {
    hold(balance)
    expect(await get()).toMatchObject({ status: 503, body: { ok: false, ledger: { ok: true }, sponsor: field } })
  })

  test('without a sponsor it says so', async () => {
    provideService(Promise.resolve(compose({ SPONSOR_SEED: '' })))
    expect((await get()).body).toMatchObject({ sponsor: { ok: true, configured: false } })
  })

  test.each([
    [{ CONFIDENTIAL_TOKEN: '' }, 'nothing to pay for: set CONFIDENTIAL_TOKEN'],
    [{ SPONSOR_CONTRACTS: 'none' }, 'nothing to pay for: SPONSOR_CONTRACTS is empty'],
  ])(
    'a sponsor with nothing to pay for, %j, says so, whatever it has, and is no reason to be unready',
    async (variables, problem) => {
      provideService(Promise.resolve(compose(variables as Record<string, string>)))
      hold(10_000_000n)
      const { status, body } = await get()
      expect(status).toBe(200)
      expect(body).toMatchObject({
        ok: true,
        sponsor: { ok: true, configured: false, problem, availableXlm: '0.0000000' },
      })
    },
  )

  test('looks once in five seconds, whoever asks', async () => {
    await Promise.all([get(), get(), get()])
    expect(ledger.calls).toBe(2)
    ledger.fault = 'http-503'
    now = new Date(NOW.getTime() + 4_999)
    expect((await get()).status).toBe(200)
    expect(ledger.calls).toBe(2)
    now = new Date(NOW.getTime() + 5_000)
    expect((await get()).status).toBe(503)
    expect(ledger.calls).toBe(4)
  })
})

describe.each([
  ['/withdraw', withdraw, 'withdraw'],
  ['/auditor/disclose', disclose, 'auditor disclosure'],
] as const)('POST %s', (path, route, operation) => {
  const post = async (authorization?: string) => {
    const response = await route.POST(ask(path, 'POST', authorization ? { authorization } : {}), {})
    return { asks: response.headers.get('www-authenticate'), ...(await readJson(response)) }
  }

  test('is 401 without a session', async () => {
    const missing = { asks: 'Bearer', status: 401, body: { error: 'missing bearer token', code: 'bearer-missing' } }
    expect(await post()).toEqual(missing)
    expect(await post('Basic dXNlcjpwdw==')).toEqual(missing)
    expect(await post('Bearer not.a.session')).toEqual({
      ...missing,
      body: { error: 'invalid session token', code: 'bearer-invalid' },
    })
  })

  test('is 501 with one, of either kind', async () => {
    const { settings } = compose()
    for (const identity of [
      { kind: 'ledger', sub: address },
      { kind: 'idp', sub: 'someone', issuer: 'https://login.example' },
    ] as const) {
      const session = await mintSession(settings.sessions, identity, NOW)
      const { status, body } = await post(`Bearer ${session}`)
      expect(status).toBe(501)
      expect(body).toEqual({
        error: `${operation} is not wired to the API: run it from the command-line client tooling, on the device that holds the keys`,
        code: 'not-wired',
      })
    }
  })

  test('is 401 again when the session has ended', async () => {
    const { settings } = compose()
    const session = await mintSession(settings.sessions, { kind: 'ledger', sub: address }, NOW)
    now = new Date(NOW.getTime() + 3_600_000)
    expect(await post(`Bearer ${session}`)).toMatchObject({
      status: 401,
      body: { error: 'session expired', code: 'session-expired' },
    })
  })

  test('a GET is no route, with or without a session', async () => {
    const response = await route.GET(ask(path), {})
    expect([response.status, response.headers.get('allow')]).toEqual([404, 'POST, OPTIONS'])
  })
})

describe('a path that is not there', () => {
  test.each(Object.entries({ GET, POST, PUT, PATCH, DELETE }))('%s', async (method, handler) => {
    const response = await handler(ask('/nope/at%20all?token=hunter2', method), {})
    expect(await readJson(response)).toEqual({
      status: 404,
      body: { statusCode: 404, error: 'Not Found', message: `Route ${method}:/nope/at%20all not found` },
    })
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
  })
})

test('a service that did not start is a fixed 500', async () => {
  const failed = Promise.reject(new Error('hunter2'))
  failed.catch(() => undefined)
  provideService(failed)
  expect(await readJson(await health.GET(ask('/health'), {}))).toEqual({
    status: 500,
    body: { error: 'internal error', code: 'internal' },
  })
})
