import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { transfers as table } from '#drizzle/schema/transfers.ts'
import { type Database, openStore, type Store } from '#lib/db/connection.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { quotaDay } from '#lib/transfers/quota.ts'
import { cloneDatabase } from '../support/database.ts'
import { startWebSocketProxy } from '../support/web-socket-proxy.ts'
import {
  addressNamed,
  BID,
  DAY,
  FITTING,
  limits,
  type NamedTransfer,
  PLENTY,
  QUOTA_CASES,
  recordNamed,
  settleNamed,
  transferNamed,
} from './quota-cases.ts'
import { clear, findDiscrepancies, readQuotas } from './quota-ledger.ts'
import { FAILURE, SUCCESS } from './records.ts'
import { expectRefusal } from './refused.ts'

const NOW = new Date('2026-05-01T12:00:00Z')
/** Every case runs on PostgreSQL over 40 connections of four pools, with each driver, and on the embedded database. */
const stores: Record<string, { stores: Store[]; close(): Promise<void> }> = {}

beforeAll(async () => {
  const clone = await cloneDatabase()
  const others = [1, 2, 3].map(() => openStore({ url: clone.url }))
  stores.PostgreSQL = {
    stores: [clone.store, ...others],
    close: async () => {
      for (const store of others) await store.close()
      await clone.drop()
    },
  }
  const webSockets = await startWebSocketProxy(clone.url)
  const vercel = { url: clone.url.replace('127.0.0.1', 'localhost'), webSocketProxy: webSockets.address }
  const overWebSockets = [1, 2, 3, 4].map(() => openStore(vercel))
  stores.Vercel = {
    stores: overWebSockets,
    close: async () => {
      for (const store of overWebSockets) await store.close()
      await webSockets.close()
    },
  }
  const embedded = openStore({ directory: null })
  stores.PGlite = { stores: [embedded], close: embedded.close }
})
afterAll(async () => {
  // The clone of PostgreSQL, which both drivers use, last.
  for (const name of ['PGlite', 'Vercel', 'PostgreSQL']) await stores[name]?.close()
})

/** The outcome of each of `transfers`, all recorded at once on as many connections as there are. */
async function recordAll(
  databases: Database[],
  transfers: NamedTransfer[],
  ...[given, available]: [typeof limits, bigint]
): Promise<string[]> {
  const attempts = transfers.map(async (transfer, index) => {
    const db = databases[index % databases.length]
    if (!db) throw new Error('no database')
    try {
      return (await recordNamed(db, transfer, given, available)).kind
    } catch (error) {
      if (error instanceof SponsorRefusal) return error.reason
      throw error
    }
  })
  return Promise.all(attempts)
}

const times = (count: number, transfer: (index: number) => NamedTransfer) =>
  Array.from({ length: count }, (_, index) => transfer(index))
const numberOf = (outcomes: string[], outcome: string) => outcomes.filter((each) => each === outcome).length

describe.each(['PostgreSQL', 'Vercel', 'PGlite'])('%s', (name) => {
  let databases: Database[]
  let db: Database
  beforeEach(async () => {
    databases = await Promise.all((stores[name]?.stores ?? []).map((store) => store.database()))
    const [first] = databases
    if (!first) throw new Error('no database')
    db = first
    await clear(db)
  })

  test.each(QUOTA_CASES)(
    'accepts exactly as many of 100 concurrent transfers as fit at the edge of $name',
    async (given) => {
      const transfers = times(100, (index) =>
        transferNamed(`${index}`, { kind: given.kind ?? 'transfer', quotaAccount: `payer ${index % given.payers}` }),
      )
      const ours = { ...limits, ...given.limits }
      const outcomes = await recordAll(databases, transfers, ours, given.available ?? PLENTY)
      expect(numberOf(outcomes, 'begun')).toBe(FITTING)
      expect(numberOf(outcomes, given.reason)).toBe(100 - FITTING)
      expect(await db.$count(table)).toBe(FITTING)
      expect(await readQuotas(db)).toMatchObject({
        [`* ${DAY}`]: [BigInt(FITTING) * BID, 0n, FITTING],
        'float of sponsor': BigInt(FITTING) * BID,
      })
      expect(await findDiscrepancies(db)).toEqual([])
    },
  )

  test.each([
    ['no transfers', { ...limits, transfersPerAccount: 0 }, PLENTY, 'quota-transfers'],
    ['a quota below the bid', { ...limits, stroopsPerAccount: BID - 1n }, PLENTY, 'quota-stroops'],
    ['a budget below the bid', { ...limits, dailyBudget: BID - 1n }, PLENTY, 'daily-budget'],
    ['a float below the bid', limits, BID - 1n, 'float'],
    ['an empty float', limits, 0n, 'float'],
  ] as const)(
    '%s: the first transfer of the day is refused, and leaves no record',
    async (_, given, available, reason) => {
      await expectRefusal(() => recordNamed(db, transferNamed('first'), given, available), reason)
      expect(await readQuotas(db)).toEqual({})
      expect(await db.$count(table)).toBe(0)
    },
  )

  test.each([
    ['quota-transfers', { transfersPerAccount: 2 }, { used: '2', limit: '2' }],
    ['quota-stroops', { stroopsPerAccount: 2n * BID + 1n }, { used: String(2n * BID), limit: String(2n * BID + 1n) }],
  ] as const)(
    'names what an account has used, its limit, and when that begins anew: %s',
    async (reason, given, used) => {
      const ofPayer = (name: string) =>
        recordNamed(db, transferNamed(name, { quotaAccount: 'payer' }), { ...limits, ...given }, PLENTY)
      for (const name of ['1', '2']) await ofPayer(name)
      const details = { ...used, resetsAt: '2026-05-02T00:00:00.000Z' }
      await expect(ofPayer('3')).rejects.toMatchObject({ reason, details })
    },
  )

  test('continues payments and delegations once registrations and merges have used up their budget', async () => {
    const given = { ...limits, callsBudget: BID }
    expect((await recordNamed(db, transferNamed('1', { kind: 'register' }), given, PLENTY)).kind).toBe('begun')
    await expectRefusal(() => recordNamed(db, transferNamed('2', { kind: 'merge' }), given, PLENTY), 'daily-budget')
    for (const kind of ['transfer', 'set_spender', 'revoke_spender'] as const) {
      expect((await recordNamed(db, transferNamed(kind, { kind }), given, PLENTY)).kind).toBe('begun')
    }
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('accepts a bid that reaches every limit exactly', async () => {
    const exact = { transfersPerAccount: 1, stroopsPerAccount: BID, dailyBudget: BID, callsBudget: BID }
    expect((await recordNamed(db, transferNamed('first'), exact, BID)).kind).toBe('begun')
    await expectRefusal(() => recordNamed(db, transferNamed('second'), exact, BID), 'quota-transfers')
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('reserves once for the same inner transaction 20 times at once: one new, 19 join', async () => {
    const one = { ...limits, transfersPerAccount: 1, dailyBudget: BID }
    const outcomes = await recordAll(
      databases,
      times(20, () => transferNamed('same')),
      one,
      BID,
    )
    expect([numberOf(outcomes, 'begun'), numberOf(outcomes, 'known')]).toEqual([1, 19])
    expect(await readQuotas(db)).toEqual({
      [`payer ${DAY}`]: [BID, 0n, 1],
      [`* ${DAY}`]: [BID, 0n, 1],
      'float of sponsor': BID,
    })
  })

  test('leaves nothing behind when the same inner transaction is refused 20 times at once', async () => {
    const outcomes = await recordAll(
      databases,
      times(20, () => transferNamed('same')),
      limits,
      BID - 1n,
    )
    expect(numberOf(outcomes, 'float')).toBe(20)
    expect(await readQuotas(db)).toEqual({})
  })

  test('returns the first record for the same transaction, even with another bid, without using quota', async () => {
    const { transfer, envelopes } = await recordNamed(db, transferNamed('same'), limits, PLENTY)
    const other = transferNamed('same', {
      outerHash: 'ff'.repeat(32),
      bid: 9n,
      sponsor: 'another',
      createdAt: new Date('2026-05-02T12:00:00Z'),
    })
    const none = { transfersPerAccount: 0, stroopsPerAccount: 0n, dailyBudget: 0n, callsBudget: 0n }
    expect(await recordNamed(db, other, none, 0n)).toEqual({ kind: 'known', transfer, envelopes })
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('does not reduce the quota of one account when another has used up its own', async () => {
    const given = { ...limits, transfersPerAccount: 2 }
    for (const each of ['1', '2']) await recordNamed(db, transferNamed(each), given, PLENTY)
    await expectRefusal(() => recordNamed(db, transferNamed('3'), given, PLENTY), 'quota-transfers')
    await recordNamed(db, transferNamed('4', { quotaAccount: 'other' }), given, PLENTY)
    expect(await readQuotas(db)).toEqual({
      [`payer ${DAY}`]: [2n * BID, 0n, 2],
      [`other ${DAY}`]: [BID, 0n, 1],
      [`* ${DAY}`]: [3n * BID, 0n, 3],
      'float of sponsor': 3n * BID,
    })
  })

  test('starts the next day at zero, and charges a settled transfer to the day on which it was recorded', async () => {
    const given = { ...limits, transfersPerAccount: 1, dailyBudget: BID }
    const next = '2026-05-02'
    await recordNamed(db, transferNamed('1'), given, PLENTY)
    await expectRefusal(() => recordNamed(db, transferNamed('2'), given, PLENTY), 'quota-transfers')
    await recordNamed(db, transferNamed('2', { createdAt: new Date(`${next}T12:00:00Z`) }), given, PLENTY)
    await settleNamed(db, transferNamed('1').innerHash, SUCCESS, NOW)
    expect(await readQuotas(db)).toEqual({
      [`payer ${DAY}`]: [0n, SUCCESS.feeCharged, 1],
      [`* ${DAY}`]: [0n, SUCCESS.feeCharged, 1],
      [`payer ${next}`]: [BID, 0n, 1],
      [`* ${next}`]: [BID, 0n, 1],
      'float of sponsor': BID,
    })
  })

  test('keeps the float across days, separately for each sponsor', async () => {
    await recordNamed(db, transferNamed('1'), limits, BID)
    const tomorrow = transferNamed('2', { createdAt: new Date('2026-05-02T12:00:00Z') })
    await expectRefusal(() => recordNamed(db, tomorrow, limits, 2n * BID - 1n), 'float')
    await recordNamed(db, { ...tomorrow, sponsor: 'another' }, limits, BID)
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('counts the charged fee against the limits, and releases the rest of the bid', async () => {
    const given = { ...limits, stroopsPerAccount: SUCCESS.feeCharged + BID }
    await recordNamed(db, transferNamed('1'), given, BID)
    await expectRefusal(() => recordNamed(db, transferNamed('2'), given, PLENTY), 'quota-stroops')
    await settleNamed(db, transferNamed('1').innerHash, SUCCESS, NOW)
    await recordNamed(db, transferNamed('2'), given, BID)
    await settleNamed(db, transferNamed('2').innerHash, FAILURE, NOW)
    await expectRefusal(() => recordNamed(db, transferNamed('3'), given, PLENTY), 'quota-stroops')
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('releases the bid of an expired transfer, which is still counted', async () => {
    const ofPayer = (name: string) => transferNamed(name, { account: 'payer', quotaAccount: undefined })
    const given = { transfersPerAccount: 2, stroopsPerAccount: BID, dailyBudget: BID, callsBudget: BID }
    await recordNamed(db, ofPayer('1'), given, BID)
    await settleNamed(db, transferNamed('1').innerHash, null, NOW)
    expect((await recordNamed(db, ofPayer('2'), given, BID)).kind).toBe('begun')
    await settleNamed(db, transferNamed('2').innerHash, null, NOW)
    await expectRefusal(() => recordNamed(db, ofPayer('3'), given, BID), 'quota-transfers')
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('frees the float of a transfer that ends as unknown, and charges its bid to the quota', async () => {
    const given = { ...limits, stroopsPerAccount: 2n * BID - 1n }
    await recordNamed(db, transferNamed('1'), given, BID)
    await settleNamed(db, transferNamed('1').innerHash, { status: 'unknown' }, NOW)
    expect(await readQuotas(db)).toEqual({
      [`payer ${DAY}`]: [0n, BID, 1],
      [`* ${DAY}`]: [0n, BID, 1],
      'float of sponsor': 0n,
    })
    await expectRefusal(() => recordNamed(db, transferNamed('2'), given, BID), 'quota-stroops')
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('reserves only the difference for a rival of the same number, and counts it once', async () => {
    const exact = { transfersPerAccount: 1, stroopsPerAccount: 3n * BID, dailyBudget: 3n * BID, callsBudget: 3n * BID }
    const rival = (name: string, bid: bigint) => transferNamed(name, { account: addressNamed('1'), bid })
    await recordNamed(db, transferNamed('1'), exact, 3n * BID)
    expect((await recordNamed(db, rival('less', BID - 1n), exact, 3n * BID)).kind).toBe('joined')
    expect(await readQuotas(db)).toMatchObject({ [`payer ${DAY}`]: [BID, 0n, 1], 'float of sponsor': BID })
    expect((await recordNamed(db, rival('more', 3n * BID), exact, 3n * BID)).kind).toBe('joined')
    expect(await readQuotas(db)).toMatchObject({ [`payer ${DAY}`]: [3n * BID, 0n, 1], 'float of sponsor': 3n * BID })
    await expectRefusal(() => recordNamed(db, rival('fourth', 1n), exact, 3n * BID), 'too-many-envelopes')
    expect(await findDiscrepancies(db)).toEqual([])
    await settleNamed(db, rival('more', 0n).innerHash, SUCCESS, NOW)
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('leaves the transfer unchanged if the quota does not allow its rival', async () => {
    const exact = { ...limits, stroopsPerAccount: BID }
    await recordNamed(db, transferNamed('1'), exact, PLENTY)
    const rival = transferNamed('2', { account: addressNamed('1'), bid: BID + 1n })
    await expectRefusal(() => recordNamed(db, rival, exact, PLENTY), 'quota-stroops')
    expect(await readQuotas(db)).toMatchObject({ [`payer ${DAY}`]: [BID, 0n, 1] })
    expect(await findDiscrepancies(db)).toEqual([])
  })
})

test.each([
  ['2026-05-01T00:00:00.000Z', '2026-05-01'],
  ['2026-05-01T23:59:59.999Z', '2026-05-01'],
  ['2026-05-01T23:30:00-02:00', '2026-05-02'],
  ['2024-02-29T12:00:00Z', '2024-02-29'],
])('the quota day of %s is %s', (moment, day) => {
  expect(quotaDay(new Date(moment))).toBe(day)
})
