import { Keypair, Networks, StrKey } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { DELETE, GET, PATCH, POST, PUT } from '#app/api/[[...path]]/route.ts'
import * as health from '#app/api/health/route.ts'
import * as ready from '#app/api/ready/route.ts'
import { readVersion } from '#lib/config/version.ts'
import { openStore } from '#lib/db/connection.ts'
import { provideService } from '#lib/server/services.ts'
import type { RunningService } from '#lib/server/start.ts'
import { captureLog } from '../support/console.ts'
import { accountEntry, type FakeRpc } from '../support/fake-rpc.ts'
import { openTestService, type TestService } from '../support/test-service.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const keypair = Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7))
const address = keypair.publicKey()
const token = StrKey.encodeContract(new Uint8Array(32).fill(7))
/** Two base reserves and a hundred transfers of the highest fee, in stroops. */
const ENOUGH = 10_000_000n + 100n * 5_000_000n

let service: TestService<'fake'>
let ledger: FakeRpc
let now: Date

beforeAll(async () => {
  const variables = { STELLAR_NETWORK: 'testnet', SPONSOR_SEED: keypair.secret(), CONFIDENTIAL_TOKEN: token }
  service = await openTestService({ ledger: 'fake', variables })
  ledger = service.ledger
})
afterAll(() => service?.close())
beforeEach(() => {
  captureLog()
  now = NOW
  Object.assign(ledger, { latestLedger: 41, closedAt: Math.floor(Date.now() / 1000) - 3, fault: undefined, calls: 0 })
  hold(ENOUGH)
  provide(service.running)
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** Sets the balance of the sponsor's account, in stroops; undefined if the account doesn't exist. */
function hold(balance: bigint | undefined): void {
  ledger.accounts.clear()
  if (balance !== undefined) ledger.accounts.set(address, accountEntry(address, { balance }))
}

/** A new object for each test, since readiness is cached per object. */
function provide(running: RunningService, more: Partial<RunningService> = {}): void {
  provideService(Promise.resolve({ ...running, now: () => now, ...more }))
}

/** Runs `work` on a service with other variables, and the clock of the test. */
const withVariables = (variables: Record<string, string>, work: () => Promise<unknown>) =>
  service.withVariables(variables, async (other) => {
    provide(other)
    await work()
  })

const ask = (path: string, method = 'GET', headers: Record<string, string> = {}) =>
  new Request(`http://localhost:3000/api${path}`, { method, headers })
const readJson = async (response: Response) => ({ status: response.status, body: await response.json() })

describe('GET /health', () => {
  const get = async () => readJson(await health.GET(ask('/health'), {}))

  test('reports what is configured', async () => {
    expect(await get()).toEqual({
      status: 200,
      body: { ok: true, network: 'testnet', idp: false, relay: false, sponsor: true },
    })
  })

  test('reports each part that is configured or not', async () => {
    const variables = {
      SPONSOR_SEED: '',
      STELLAR_NETWORK: 'local',
      DEVNET_PASSPHRASE: Networks.TESTNET,
      IDP_ISSUER: 'https://login.example',
      IDP_AUDIENCE: 'us',
    }
    await withVariables(variables, async () => {
      expect((await get()).body).toMatchObject({ ok: true, network: 'local', idp: true, sponsor: false })
    })
  })

  test('reports a sponsor once it has a key, even without a token', async () => {
    await withVariables({ CONFIDENTIAL_TOKEN: '' }, async () => {
      expect((await get()).body).toMatchObject({ ok: true, sponsor: true })
    })
  })

  test.each(['none', ''])('reports no sponsor if SPONSOR_CONTRACTS is %j', async (SPONSOR_CONTRACTS) => {
    await withVariables({ SPONSOR_CONTRACTS }, async () => {
      expect((await get()).body).toMatchObject({ ok: true, sponsor: false })
    })
  })

  test('uses neither database nor ledger', async () => {
    const database = vi.fn(service.running.database)
    provide(service.running, { database })
    ledger.fault = 'http-503'
    expect((await get()).status).toBe(200)
    expect([database.mock.calls.length, ledger.calls]).toEqual([0, 0])
  })
})

describe('GET /ready', () => {
  const { version, commit } = readVersion()
  const built = { version, ...(commit && { commit }) }
  const get = async () => {
    const response = await ready.GET(ask('/ready'), {})
    return { retryAfter: response.headers.get('retry-after'), ...(await readJson(response)) }
  }

  test('responds 200 with a field for each part', async () => {
    expect(await get()).toEqual({
      retryAfter: null,
      status: 200,
      body: {
        ok: true,
        ...built,
        database: { ok: true },
        ledger: { ok: true, latestLedger: 41, age: expect.any(Number) },
        sponsor: { ok: true, address, availableXlm: '50.0000000' },
        relay: { ok: true, configured: false },
        archive: { ok: true, behind: 41, historyLeft: 0, problem: 'nothing is archived yet' },
      },
    })
  })

  test('responds 200 with an RPC whose getHealth has no close time', async () => {
    ledger.isBefore27 = true
    try {
      expect((await get()).body).toMatchObject({ ledger: { ok: true, latestLedger: 41, age: expect.any(Number) } })
    } finally {
      ledger.isBefore27 = false
    }
  })

  test('responds 503 while the database is unreachable', async () => {
    const away = openStore({ url: 'postgres://postgres:postgres@127.0.0.1:1/nothing' })
    provide(service.running, { database: away.database })
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

  test('responds 503 without the cause while the ledger is unreachable', async () => {
    ledger.fault = 'http-503'
    expect(await get()).toEqual({
      retryAfter: '5',
      status: 503,
      body: {
        ok: false,
        ...built,
        database: { ok: true },
        ledger: { ok: false, problem: 'the ledger cannot be reached' },
        sponsor: { ok: false, problem: 'the sponsor cannot be looked up' },
        relay: { ok: true, configured: false },
        archive: { ok: false, problem: 'the archive cannot be looked up' },
      },
    })
  })

  test('responds 503 while only getHealth fails', async () => {
    ledger.fault = (method) => (method === 'getHealth' ? 'http-503' : undefined)
    expect((await get()).body).toMatchObject({ ok: false, ledger: { ok: false }, sponsor: { ok: true } })
  })

  test.each([
    [3, 200, { ok: true, latestLedger: 41 }],
    [60, 503, { ok: false, problem: 'the last ledger is old', latestLedger: 41 }],
    [-30, 200, { ok: true, latestLedger: 41, age: 0 }],
  ])('responds to a last ledger of %i seconds ago, by the database’s clock, with %i', async (age, status, field) => {
    ledger.closedAt = Math.floor(Date.now() / 1000) - age
    expect(await get()).toMatchObject({ status, body: { ledger: field } })
  })

  test.each([
    [ENOUGH - 1n, { ok: false, problem: 'the float is low', address, availableXlm: '49.9999999' }],
    [undefined, { ok: false, problem: 'the float is low', address, availableXlm: '0.0000000' }],
  ])('reports a sponsor with %s stroops as short', async (balance, field) => {
    hold(balance)
    expect(await get()).toMatchObject({ status: 503, body: { ok: false, ledger: { ok: true }, sponsor: field } })
  })

  test('reports a missing sponsor', async () => {
    await withVariables({ SPONSOR_SEED: '' }, async () => {
      expect((await get()).body).toMatchObject({ sponsor: { ok: true, configured: false } })
    })
  })

  test.each([
    [{ CONFIDENTIAL_TOKEN: '' }, 'nothing to pay for: set CONFIDENTIAL_TOKEN'],
    [{ SPONSOR_CONTRACTS: 'none' }, 'nothing to pay for: SPONSOR_CONTRACTS is empty'],
  ])('reports a sponsor with nothing to pay for, %j, and stays ready', async (variables, problem) => {
    hold(10_000_000n)
    await withVariables(variables as Record<string, string>, async () => {
      const sponsor = { ok: true, configured: false, problem, availableXlm: '0.0000000' }
      expect(await get()).toMatchObject({ status: 200, body: { ok: true, sponsor } })
    })
  })

  test('checks once in five seconds for all callers', async () => {
    await Promise.all([get(), get(), get()])
    expect(ledger.calls).toBe(3)
    ledger.fault = 'http-503'
    now = new Date(NOW.getTime() + 4_999)
    expect((await get()).status).toBe(200)
    expect(ledger.calls).toBe(3)
    now = new Date(NOW.getTime() + 5_000)
    expect((await get()).status).toBe(503)
    expect(ledger.calls).toBe(6)
  })
})

test.each([
  ['/withdraw', 'withdraw', '`npm run -s wallet -- withdraw`'],
  [
    '/auditor/disclose',
    'auditor disclosure',
    '`npm run -s auditor -- disclose` (an auditor) or `npm run -s wallet -- disclose` (an account)',
  ],
])(
  'responds 501 to POST %s with the command that does it, to a session of either kind',
  async (path, operation, commands) => {
    for (const session of [await service.wallet(address), await service.user('someone')]) {
      expect(await service.ask('POST', path, { session })).toMatchObject({
        status: 501,
        body: {
          error: `${operation} is not wired to the API: run it from the command-line client tooling, on the device that holds the keys: ${commands}`,
          code: 'not-wired',
        },
      })
    }
  },
)

describe('an unknown path', () => {
  test.each(Object.entries({ GET, POST, PUT, PATCH, DELETE }))('%s', async (method, handler) => {
    const response = await handler(ask('/nope/at%20all?token=hunter2', method), {})
    expect(await readJson(response)).toEqual({
      status: 404,
      body: { statusCode: 404, error: 'Not Found', message: `Route ${method}:/nope/at%20all not found` },
    })
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
  })
})
