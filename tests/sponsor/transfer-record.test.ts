import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sponsoredTransfers, TRANSFER_STATUSES } from '#drizzle/schema/transfers.ts'
import { type Database, openStore, sqlState } from '#lib/db/connection.ts'
import { SponsorRefusal } from '#lib/sponsor/refusal-reason.ts'
import {
  findOpenTransfers,
  findTransfer,
  isOpen,
  markSent,
  recordTransfer,
  settleTransfer,
  type TransferRecord,
} from '#lib/sponsor/transfer-record.ts'
import { cloneDatabase } from '../support/database.ts'
import { BID, DAY, limits, PLENTY, transferNamed } from './quota-cases.ts'
import { clear, findDiscrepancies, readQuotas } from './quota-ledger.ts'
import { seededRandom } from './random.ts'
import { FAILURE, OWN, SUCCESS } from './records.ts'
import { thrownBy } from './refused.ts'

const NOW = new Date('2026-05-01T12:00:00Z')
let clone: Awaited<ReturnType<typeof cloneDatabase>>
let second: ReturnType<typeof openStore>
let db: Database
/** the same database, on a server over a pool of its own */
let other: Database

beforeAll(async () => {
  clone = await cloneDatabase()
  second = clone.shared ?? openStore({ url: clone.url })
  ;[db, other] = await Promise.all([clone.store.database(), second.database()])
})
afterAll(async () => {
  if (second !== clone.store) await second.close()
  await clone.drop()
})
beforeEach(() => clear(db))

const record = async (name: string, given: Parameters<typeof transferNamed>[1] = {}) =>
  (await recordTransfer(db, transferNamed(name, given), limits, PLENTY)).record
const settle = (name: string, outcome: typeof SUCCESS | null, now = NOW) =>
  settleTransfer(db, transferNamed(name).innerHash, outcome, now)

test('what is written is what was given, held and open', async () => {
  const written = await record('1')
  expect(written).toMatchObject({ ...transferNamed('1'), status: 'held', sentAt: null, settledAt: null, ledger: null })
  expect(await findTransfer(db, written.innerHash)).toEqual(written)
  expect(await findTransfer(db, 'ff'.repeat(32))).toBeUndefined()
})

test('an outer hash that another transfer has is a fault of ours, and reserves nothing', async () => {
  const { outerHash } = await record('1')
  const thrown = await thrownBy(() => record('2', { outerHash }))
  expect(thrown).toMatchObject({ message: 'the outer hash is taken by another transfer' })
  expect(await findDiscrepancies(db)).toEqual([])
  expect(await readQuotas(db)).toMatchObject({ [`payer ${DAY}`]: [BID, 0n, 1] })
})

test('a bid of nothing is not a bid', async () => {
  const thrown = await thrownBy(() => record('1', { bid: 0n }))
  expect(sqlState(thrown)).toBe('23514')
  expect(await readQuotas(db)).toEqual({})
})

describe('markSent', () => {
  const later = new Date('2026-05-01T12:00:05Z')

  test('notes when and with which code, the last one', async () => {
    const { innerHash } = await record('1')
    await markSent(db, innerHash, { at: NOW, resultCode: 'txBadAuth' })
    expect(await findTransfer(db, innerHash)).toMatchObject({ status: 'sent', sentAt: NOW, resultCode: 'txBadAuth' })
    await markSent(db, innerHash, { at: later, resultCode: null })
    expect(await findTransfer(db, innerHash)).toMatchObject({ status: 'sent', sentAt: later, resultCode: null })
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test.each([
    ['success', SUCCESS],
    ['failed', FAILURE],
    ['dead', null],
  ])('leaves a transfer that ended as %s alone', async (_, outcome) => {
    await record('1')
    const settled = await settle('1', outcome)
    await markSent(db, settled.innerHash, { at: later, resultCode: 'txBadSeq' })
    expect(await findTransfer(db, settled.innerHash)).toEqual(settled)
  })
})

describe('settleTransfer', () => {
  test.each([
    ['success', SUCCESS, { status: 'success', contractError: null }, [0n, SUCCESS.feeCharged, 1]],
    ['failed', FAILURE, { status: 'failed', contractError: 3506 }, [0n, FAILURE.feeCharged, 1]],
    ['sent by the client itself', OWN, { status: 'success', ledgerHash: OWN.hash }, [0n, 0n, 1]],
  ] as const)('%s', async (_, outcome, fields, quota) => {
    await record('1')
    const settled = await settle('1', outcome)
    expect(settled).toMatchObject({
      ...fields,
      settledAt: NOW,
      ledgerHash: outcome.hash,
      ledger: outcome.ledger,
      feeCharged: outcome.feeCharged,
      resultCode: outcome.resultCode,
    })
    expect(await findTransfer(db, settled.innerHash)).toEqual(settled)
    expect(await readQuotas(db)).toEqual({ [`payer ${DAY}`]: quota, [`* ${DAY}`]: quota, 'float of sponsor': 0n })
  })

  test('dead: nothing is held, used or counted, and the code of the sending stays', async () => {
    const { innerHash } = await record('1')
    await markSent(db, innerHash, { at: NOW, resultCode: 'txTooLate' })
    expect(await settle('1', null)).toMatchObject({
      status: 'dead',
      settledAt: NOW,
      resultCode: 'txTooLate',
      feeCharged: null,
    })
    const none = [0n, 0n, 0]
    expect(await readQuotas(db)).toEqual({ [`payer ${DAY}`]: none, [`* ${DAY}`]: none, 'float of sponsor': 0n })
  })

  test('one of several leaves what the others hold', async () => {
    for (const name of ['1', '2', '3']) await record(name)
    await settle('2', FAILURE)
    expect(await readQuotas(db)).toMatchObject({ [`payer ${DAY}`]: [2n * BID, FAILURE.feeCharged, 3] })
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('the first ending stands, and everybody gets it', async () => {
    await record('1')
    const settled = await settle('1', SUCCESS)
    const later = new Date('2026-05-02T00:00:00Z')
    for (const outcome of [SUCCESS, FAILURE, null]) expect(await settle('1', outcome, later)).toEqual(settled)
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('20 at once, over two pools, with endings that differ: one moves it, all get the same row', async () => {
    await record('1')
    const endings = [SUCCESS, FAILURE, OWN, null]
    const settled = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        settleTransfer(index % 2 ? db : other, transferNamed('1').innerHash, endings[index % 4] ?? null, NOW),
      ),
    )
    expect(
      new Set(settled.map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value))))
        .size,
    ).toBe(1)
    expect(await findDiscrepancies(db)).toEqual([])
    expect(await readQuotas(db)).toMatchObject({ 'float of sponsor': 0n })
  })

  test('a transfer that was never recorded', async () => {
    expect(await thrownBy(() => settle('1', SUCCESS))).toMatchObject({
      message: 'a transfer that was never recorded cannot be settled',
    })
  })
})

test('open are held and sent, oldest first', async () => {
  const made: TransferRecord[] = []
  for (const name of ['1', '2', '3', '4', '5']) made.push(await record(name))
  const [, two] = made
  await markSent(db, two?.innerHash ?? '', { at: NOW, resultCode: null })
  await settle('1', SUCCESS)
  await settle('3', null)
  await settle('4', FAILURE)
  // The order of writing, turned over: what counts is when a row says it was made.
  await db
    .update(sponsoredTransfers)
    .set({ createdAt: new Date('2020-01-01T00:00:00Z') })
    .where(eq(sponsoredTransfers.innerHash, transferNamed('5').innerHash))
  const open = await findOpenTransfers(db)
  expect(open.map(({ innerHash }) => innerHash)).toEqual(['5', '2'].map((name) => transferNamed(name).innerHash))
  expect(open.map(({ status }) => status)).toEqual(['held', 'sent'])
  expect(TRANSFER_STATUSES.filter((status) => isOpen({ status }))).toEqual(['held', 'sent'])
})

describe.each([1, 2, 3])('seed %d', (seed) => {
  test('whatever happens at once, the quotas say what the transfers add up to', async () => {
    const given = { transfersPerAccount: 14, stroopsPerAccount: 9n * BID, dailyBudget: 30n * BID }
    const seen = new Map<string, number>()
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)

    async function work(worker: number): Promise<void> {
      const random = seededRandom(1000 * seed + worker)
      const database = worker % 2 ? db : other
      for (let step = 0; step < 50; step += 1) {
        // Names are shared between the workers: they record, send and settle the same transfers.
        const name = `${random(150)}`
        const transfer = transferNamed(name, {
          account: `payer ${random(4)}`,
          sponsor: `sponsor ${random(2)}`,
          quotaDay: random(5) ? DAY : '2026-05-02',
          bid: BID / 2n + BigInt(random(Number(BID))),
        })
        const what = random(10)
        if (what < 5) {
          try {
            count((await recordTransfer(database, transfer, given, 20n * BID)).isNew ? 'new' : 'joined')
          } catch (error) {
            if (!(error instanceof SponsorRefusal)) throw error
            count(error.reason)
          }
        } else if (await findTransfer(database, transfer.innerHash)) {
          if (what < 6) await markSent(database, transfer.innerHash, { at: NOW, resultCode: null })
          else {
            const outcome = [SUCCESS, FAILURE, OWN, null][random(4)] ?? null
            count((await settleTransfer(database, transfer.innerHash, outcome, NOW)).status)
          }
        }
      }
    }

    let working = true
    const watch = async () => {
      while (working) expect(await findDiscrepancies(other)).toEqual([])
    }
    const workers = Promise.all(Array.from({ length: 8 }, (_, worker) => work(worker))).finally(() => {
      working = false
    })
    await Promise.all([workers, watch()])
    expect(await findDiscrepancies(db)).toEqual([])
    // The run was not idle: every ending, joins and refusals have happened.
    for (const what of ['new', 'joined', 'success', 'failed', 'dead']) expect(seen.get(what), what).toBeGreaterThan(0)
    expect(
      [...seen.keys()].some((what) => ['quota-transfers', 'quota-stroops', 'daily-budget', 'float'].includes(what)),
    ).toBe(true)

    for (const { innerHash } of await findOpenTransfers(db)) await settleTransfer(db, innerHash, null, NOW)
    for (const [whose, held] of Object.entries(await readQuotas(db))) {
      expect(Array.isArray(held) ? held[0] : held, whose).toBe(0n)
    }
    expect(await findDiscrepancies(db)).toEqual([])
  })
})

test('the check that the quotas are right finds what is wrong', async () => {
  await record('1')
  await db.update(sponsoredTransfers).set({ bid: BID + 1n })
  const found = await findDiscrepancies(db)
  expect(found).toHaveLength(3)
  expect(found).toEqual(
    expect.arrayContaining([
      { account: '*', day: DAY },
      { account: 'payer', day: DAY },
      { account: 'sponsor', day: 'float' },
    ]),
  )
})
