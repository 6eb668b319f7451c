import { createPool } from '@vercel/postgres'
import { sql } from 'drizzle-orm'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { insertRows, itemRow, jobRow } from '#lib/cli/seed/rows.ts'
import {
  type Database,
  isUnreachable,
  openStore,
  type Store,
  sqlState,
  transact,
  violatedConstraint,
} from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { leaseLine } from '#lib/relay/lease.ts'
import { type Channel, RELAY_TIMES, type Relay } from '#lib/relay/relay.ts'
import { listenForLines, wakeRelays } from '#lib/relay/wake-up.ts'
import { cloneDatabase } from '../support/database.ts'
import { startWebSocketProxy, type WebSocketProxy } from '../support/web-socket-proxy.ts'
import {
  FITTING,
  limits,
  PLENTY,
  QUOTA_CASES,
  recordNamed,
  settleNamed,
  transferNamed,
} from '../transfers/quota-cases.ts'
import { clear, findDiscrepancies } from '../transfers/quota-ledger.ts'
import { SUCCESS } from '../transfers/records.ts'

let clone: Awaited<ReturnType<typeof cloneDatabase>>
let proxy: WebSocketProxy
/** two clients of the same database through the driver */
let stores: [Store, Store]
let db: Database
let other: Database

function open(url: string, connections = 4): Store {
  const local = new URL(url)
  local.hostname = 'localhost'
  return openStore({ url: local.href, webSocketProxy: proxy.address, connections })
}

beforeAll(async () => {
  clone = await cloneDatabase()
  proxy = await startWebSocketProxy(clone.url)
  stores = [open(clone.url), open(clone.url)]
  db = await stores[0].database()
  other = await stores[1].database()
})
afterAll(async () => {
  for (const store of stores) await store.close()
  await proxy.close()
  await clone.drop()
})

test('uses Vercel’s driver', () => {
  expect('$client' in db && db.$client).toBeInstanceOf(
    createPool({ connectionString: 'postgres://localhost/x' }).constructor,
  )
})

/** Normalizes a result that drivers decode differently because it is not a column of the schema. */
const plainly = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(plainly)
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : value
}

describe('returns the same results and errors as the other drivers', () => {
  const drivers: Record<string, Store> = {}
  beforeAll(() => {
    drivers.pg = clone.store
    drivers.PGlite = openStore({ directory: null })
    drivers.Vercel = stores[0]
  })
  afterAll(() => drivers.PGlite?.close())

  /** Runs `ask` on each driver. */
  async function onEach<Result>(ask: (db: Database) => Promise<Result>): Promise<Result[]> {
    return Promise.all(Object.values(drivers).map(async (store) => ask(await store.database())))
  }

  test.each([
    'count(*) FROM quotas',
    '9007199254740993::int8',
    '1::int4',
    'sum(x) FROM (VALUES (1::bigint), (2)) AS v (x)',
    "'x'::text",
    'NULL::text',
    'true',
    "'\\x00ff'::bytea",
    `'{"a": [1, null]}'::jsonb`,
    "ARRAY['a', 'b']",
    "'2026-05-01T12:00:00.123Z'::timestamptz AT TIME ZONE 'UTC'",
  ])('SELECT %s', async (expression) => {
    const [first, ...others] = await onEach(async (each) => {
      const { rows } = (await each.execute(sql.raw(`SELECT ${expression}`))) as unknown as { rows: object[] }
      return rows.map((row) => Object.values(row).map(plainly))
    })
    expect(first).toHaveLength(1)
    for (const other of others) expect(other).toEqual(first)
  })

  test('returns rows as written: bigints beyond 2^53, dates to the millisecond, any text', async () => {
    const written = transferNamed('🜚 "quoted" \\ and\nmore', { bid: 9_007_199_254_740_993n, maxTime: 4_102_444_800 })
    const dearer = { ...limits, stroopsPerAccount: 2n ** 62n, dailyBudget: 2n ** 62n }
    const results = await onEach(async (each) => {
      await clear(each)
      await recordNamed(each, written, dearer, 2n ** 62n)
      const settled = await settleNamed(each, written.innerHash, SUCCESS, new Date('2026-05-01T12:00:00.123Z'))
      const { id: _, createdAt: __, ...row } = settled
      return row
    })
    expect(results[0]).toMatchObject({ bid: written.bid, settledAt: new Date('2026-05-01T12:00:00.123Z') })
    for (const row of results.slice(1)) expect(row).toEqual(results[0])
    await onEach(clear)
  })

  test.each([
    ['a unique violation', "INSERT INTO sponsor_floats (sponsor) VALUES ('twice'), ('twice')", '23505'],
    ['a check', "INSERT INTO sponsor_floats (sponsor, held) VALUES ('x', -1)", '23514'],
    ['a null', 'INSERT INTO sponsor_floats (sponsor) VALUES (NULL)', '23502'],
    ['no such table', 'SELECT 1 FROM nowhere', '42P01'],
    ['no statement', 'SELEKT', '42601'],
    ['a division', 'SELECT 1 / 0', '22012'],
  ])('%s', async (_, statement, state) => {
    const results = await onEach(async (each) => {
      const error = await transact(each, (tx) => tx.execute(sql.raw(statement))).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      return { state: sqlState(error), constraint: violatedConstraint(error), isUnreachable: isUnreachable(error) }
    })
    expect(results[0]).toMatchObject({ state, isUnreachable: false })
    for (const each of results.slice(1)) expect(each).toEqual(results[0])
  })
})

describe('transactions', () => {
  beforeEach(() => clear(db))

  test.each(QUOTA_CASES)('records as many of 60 concurrent transfers as fit ($name)', async (quotaCase) => {
    const attempts = Array.from({ length: 60 }, async (_, index) => {
      const { kind = 'transfer', payers } = quotaCase
      const transfer = transferNamed(String(index), { kind, quotaAccount: `payer ${index % payers}` })
      for (;;) {
        try {
          await recordNamed(
            [db, other][index % 2] ?? db,
            transfer,
            { ...limits, ...quotaCase.limits },
            quotaCase.available ?? PLENTY,
          )
          return 'new'
        } catch (error) {
          if (error instanceof SponsorRefusal) return error.reason
          // It waited too long for its turn, and is to try again.
          if (!(error instanceof Refusal && error.code === 'unavailable')) throw error
        }
      }
    })
    const outcomes = await Promise.all(attempts)
    expect(outcomes.filter((outcome) => outcome === 'new')).toHaveLength(FITTING)
    expect(new Set(outcomes)).toEqual(new Set(['new', quotaCase.reason]))
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('records one transfer for twenty concurrent requests', async () => {
    const attempts = Array.from({ length: 20 }, (_, index) =>
      recordNamed([db, other][index % 2] ?? db, transferNamed('same'), limits, PLENTY),
    )
    const news = (await Promise.all(attempts)).filter(({ kind }) => kind === 'begun')
    expect(news).toHaveLength(1)
    expect(await findDiscrepancies(db)).toEqual([])
  })
})

test('writes a job’s lines and wakes the relays in one transaction, and does neither after a rollback', async () => {
  const listener = openStore({ url: clone.url })
  const woken = vi.fn()
  // Relays with this driver poll: no session of a pooler lasts.
  expect(await listenForLines(db, woken)).toBeUndefined()
  const listening = await listenForLines(await listener.database(), woken)
  await expect.poll(() => woken.mock.calls.length).toBe(1)

  const [lost, kept] = [jobRow(), jobRow()]
  const write = (job: typeof lost, fails: boolean) =>
    transact(db, async (tx) => {
      await insertRows(tx, { jobs: [job], items: [itemRow({ job: job.id, sealedAmount: 'sealed' })] })
      await wakeRelays(tx)
      if (fails) throw new Error('no')
    })
  await expect(write(lost, true)).rejects.toThrow('no')
  await write(kept, false)
  await expect.poll(() => woken.mock.calls.length).toBe(2)
  await db.insert(relayChannels).values({ token: 'C', address: 'G', seenAt: new Date() })
  const relay = { database: stores[0].database, token: 'C', relayKey: kept.relayKey, times: RELAY_TIMES } as Relay
  const lease = () => leaseLine(relay, { address: 'G' } as Channel, { held: undefined, canRun: false })
  expect(await lease()).toMatchObject({ job: kept.id, position: 0, channel: 'G' })
  expect(await lease()).toBeUndefined()
  await listening?.close()
  await listener.close()
})

const LISTEN = 'LISTEN payroll_lines'

test.each([
  [
    'is terminated',
    async (_: Client, own: Database) => {
      await own.execute(sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND query = ${LISTEN}`)
    },
  ],
  [
    'no longer listens, because a pooler has reset it',
    async (session: Client) => {
      await session.query('UNLISTEN *')
    },
  ],
])('relays look for lines again after their session %s', async (_, lose) => {
  const queries = vi.spyOn(Client.prototype, 'query')
  const woken = vi.fn()
  const store = openStore({ url: clone.url })
  const own = await store.database()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const listening = await listenForLines(own, woken)
  try {
    expect(woken).toHaveBeenCalledTimes(1)
    const session = queries.mock.contexts[queries.mock.calls.findIndex(([text]) => String(text) === LISTEN)]
    await lose(session as Client, own)
    await wakeRelays(own)
    expect(woken).toHaveBeenCalledTimes(1)
    const wait = async () => {
      await vi.advanceTimersByTimeAsync(1_000)
      return woken.mock.calls.length
    }
    await expect.poll(wait).toBe(2)
    await wakeRelays(own)
    await expect.poll(wait).toBe(3)
  } finally {
    vi.useRealTimers()
    queries.mockRestore()
    await listening?.close()
    await store.close()
  }
})

describe('an outage', () => {
  beforeEach(() => clear(db))

  test('is reported as unavailable until it ends', async () => {
    await proxy.fall()
    await expect(transact(db, (tx) => tx.execute(sql`SELECT 1`))).rejects.toMatchObject({ code: 'unavailable' })
    await expect(db.query.quotas.findMany()).rejects.toSatisfy(isUnreachable)
    const fresh = open(clone.url)
    await expect(fresh.database()).rejects.toMatchObject({ code: 'unavailable' })
    await proxy.wake()
    expect(await db.query.quotas.findMany()).toEqual([])
    expect(await (await fresh.database()).query.quotas.findMany()).toEqual([])
    await fresh.close()
  })

  test('loses only the current transaction if it happens during one', async () => {
    for (let round = 0; round < 5; round += 1) {
      const cut = transact(db, async (tx) => {
        await tx.execute(sql`INSERT INTO sponsor_floats (sponsor) VALUES ('cut')`)
        await proxy.fall()
        await tx.execute(sql`SELECT 1`)
      })
      await expect(cut).rejects.toSatisfy(isUnreachable)
      await proxy.wake()
    }
    await transact(db, (tx) => tx.execute(sql`SELECT 1`))
    expect(await db.query.sponsorFloats.findMany()).toEqual([])
  })
})
