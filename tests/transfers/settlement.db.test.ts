import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { envelopes, TRANSFER_STATUSES, transfers } from '#drizzle/schema/transfers.ts'
import { type Database, openStore } from '#lib/db/connection.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { eraseOldEnvelopes } from '#lib/transfers/erasure.ts'
import {
  findEnvelopes,
  findOpenTransfers,
  findTransferOfHash,
  lastLedgerOf,
  setOf,
  type Transfer,
} from '#lib/transfers/rows.ts'
import { settle } from '#lib/transfers/settle.ts'
import { cloneDatabase } from '../support/database.ts'
import {
  addressNamed,
  BID,
  DAY,
  decisionOf,
  limits,
  PLENTY,
  recordNamed,
  settleNamed,
  transferNamed,
} from './quota-cases.ts'
import { clear, findDiscrepancies, readQuotas } from './quota-ledger.ts'
import { seededRandom } from './random.ts'
import { FAILURE, OWN, SUCCESS } from './records.ts'
import { thrownBy } from './refused.ts'
import { RIVAL_CASES } from './rival-cases.ts'

/** the account of the transfer that is named 1 */
const PAYER = addressNamed('1')

const NOW = new Date('2026-05-01T12:00:00Z')
let clone: Awaited<ReturnType<typeof cloneDatabase>>
let second: ReturnType<typeof openStore>
let db: Database
/** the same database, on a server over a separate pool */
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
  (await recordNamed(db, transferNamed(name, given), limits, PLENTY)).transfer
const settleAs = (name: string, outcome: Parameters<typeof settleNamed>[2], now = NOW) =>
  settleNamed(db, transferNamed(name).innerHash, outcome, now)
/** Notes that an envelope was submitted, under the lock of its open transfer, as the tracker does. */
const sendNamed = (database: Database, { innerHash }: { innerHash: string }) =>
  database.execute(sql`UPDATE envelopes SET first_sent_at = now(), last_sent_at = now(), sent_ledger = 100
    WHERE inner_hash = ${innerHash} AND transfer IN (SELECT id FROM transfers WHERE status = 'open'
      AND id = (SELECT transfer FROM envelopes WHERE inner_hash = ${innerHash}) FOR SHARE)`)
const statusOf = async (name: string) => (await findTransferOfHash(db, transferNamed(name).innerHash))?.transfer.status

describe('recordEnvelope', () => {
  test('records a transfer with the given values as open', async () => {
    const written = await record('1')
    const { account, recipient, sponsor, bid, sequenceNumber, recordedLedger } = transferNamed('1')
    expect(written).toMatchObject({ account, recipient, sponsor, bid, sequenceNumber, recordedLedger, status: 'open' })
    const { innerHash, outerHash } = transferNamed('1')
    const envelope = { innerHash, outerHash, isSendable: true }
    expect(await findTransferOfHash(db, innerHash)).toMatchObject({ transfer: written, envelopes: [envelope] })
    expect(await findTransferOfHash(db, 'ff'.repeat(32))).toBeUndefined()
  })

  const rival = (name: string, given: Parameters<typeof transferNamed>[1] = {}) =>
    recordNamed(db, transferNamed(name, { account: PAYER, ...given }), limits, PLENTY)
  const reasonOf = async (recording: Promise<unknown>) => {
    const thrown = await thrownBy(() => recording)
    return thrown instanceof SponsorRefusal ? [thrown.reason, thrown.message] : thrown
  }

  test('joins envelopes of one account and number to one transfer, three at most', async () => {
    const { id } = await record('1')
    expect(await rival('2')).toMatchObject({ kind: 'joined', transfer: { id } })
    expect(await rival('3')).toMatchObject({ kind: 'joined', transfer: { id } })
    expect(await rival('3')).toMatchObject({ kind: 'known', transfer: { id } })
    expect(await findEnvelopes(db, [id])).toHaveLength(3)
  })

  test.each(RIVAL_CASES)('refuses $name', async ({ rivals, given, reason, detail }) => {
    await record('1')
    for (const name of ['2', '3'].slice(0, rivals)) await rival(name, { maxTime: 1_777_636_900 })
    expect(await reasonOf(rival('4', given))).toEqual([reason, expect.stringContaining(detail)])
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('starts a transfer for the next number once the first is settled', async () => {
    await record('1')
    await settleAs('1', SUCCESS)
    expect(await rival('3', { sequenceNumber: 9n })).toMatchObject({ kind: 'begun' })
  })

  test('recognises a settled envelope while the next number is open', async () => {
    const { id } = await record('1')
    await settleAs('1', SUCCESS)
    await rival('3', { sequenceNumber: 9n })
    // A second request with the first envelope, which was verified before the first was answered.
    expect(await rival('1')).toMatchObject({ kind: 'known', transfer: { id, status: 'succeeded' } })
  })

  test('starts a new transfer for the same number after the first has expired', async () => {
    const { id } = await record('1')
    await settleAs('1', null)
    const next = await rival('2')
    expect(next.kind).toBe('begun')
    expect(next.transfer.id).not.toBe(id)
    // The first is still the same request.
    expect(await rival('1')).toMatchObject({ kind: 'known', transfer: { id, status: 'expired' } })
  })

  test('records one transfer, three envelopes and one reservation for twenty concurrent rivals on two pools', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const named = transferNamed(`${index}`, { account: PAYER })
        const thrown = await thrownBy(() => recordNamed(index % 2 ? db : other, named, limits, PLENTY))
        return thrown instanceof SponsorRefusal ? thrown.reason : (thrown ?? 'recorded')
      }),
    )
    expect(outcomes.filter((outcome) => outcome === 'recorded')).toHaveLength(3)
    expect(outcomes.filter((outcome) => outcome === 'too-many-envelopes')).toHaveLength(17)
    expect(await db.$count(transfers)).toBe(1)
    expect(await readQuotas(db)).toMatchObject({ [`payer ${DAY}`]: [BID, 0n, 1], 'float of sponsor': BID })
    expect(await findDiscrepancies(db)).toEqual([])
  })
})

describe('settle', () => {
  test.each([
    ['succeeded', SUCCESS, { status: 'succeeded', contractError: null }, [0n, SUCCESS.feeCharged, 1]],
    ['failed', FAILURE, { status: 'failed', contractError: 3506 }, [0n, FAILURE.feeCharged, 1]],
    ['sent by the client itself', OWN, { status: 'succeeded', hash: OWN.hash }, [0n, 0n, 1]],
  ] as const)('%s', async (_, outcome, fields, quota) => {
    await record('1')
    const settled = await settleAs('1', outcome)
    expect(settled).toMatchObject({
      ...fields,
      settledAt: NOW,
      hash: outcome.hash,
      applied: transferNamed('1').innerHash,
      ledger: outcome.ledger,
      feeCharged: outcome.feeCharged,
      resultCode: outcome.resultCode,
    })
    expect((await findTransferOfHash(db, transferNamed('1').innerHash))?.transfer).toEqual(settled)
    expect(await readQuotas(db)).toEqual({ [`payer ${DAY}`]: quota, [`* ${DAY}`]: quota, 'float of sponsor': 0n })
  })

  test.each([
    ['gives back the count of a relay’s item that expired without being submitted', 'payer', false, 0],
    ['keeps the count of a relay’s item that was submitted and expired', 'payer', true, 1],
    ['keeps the count of a client’s transfer that expired without being submitted', undefined, false, 1],
  ])('%s, and holds nothing', async (_, quotaAccount, isSubmitted, count) => {
    await record('1', { quotaAccount })
    if (isSubmitted) await sendNamed(db, transferNamed('1'))
    expect(await settleAs('1', null)).toMatchObject({ status: 'expired', settledAt: NOW, hash: null, feeCharged: null })
    const none = [0n, 0n, count]
    expect(await readQuotas(db)).toEqual({
      [`${quotaAccount ?? PAYER} ${DAY}`]: none,
      [`* ${DAY}`]: none,
      'float of sponsor': 0n,
    })
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('releases one bid, and keeps those of other transfers', async () => {
    for (const name of ['1', '2', '3']) await record(name)
    await settleAs('2', FAILURE)
    expect(await readQuotas(db)).toMatchObject({ [`payer ${DAY}`]: [2n * BID, FAILURE.feeCharged, 3] })
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('keeps the first outcome, and returns it to every caller', async () => {
    await record('1')
    const settled = await settleAs('1', SUCCESS)
    const later = new Date('2026-05-02T00:00:00Z')
    for (const outcome of [SUCCESS, FAILURE, null]) expect(await settleAs('1', outcome, later)).toEqual(settled)
    expect(await findDiscrepancies(db)).toEqual([])
  })

  test('keeps one of 20 concurrent settlements with different outcomes on two pools, and returns the same row to all', async () => {
    await record('1')
    const endings = [SUCCESS, FAILURE, OWN, null]
    const settled = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        settleNamed(index % 2 ? db : other, transferNamed('1').innerHash, endings[index % 4] ?? null, NOW),
      ),
    )
    for (const row of settled) expect(row).toEqual(settled[0])
    expect(await findDiscrepancies(db)).toEqual([])
    expect(await readQuotas(db)).toMatchObject({ 'float of sponsor': 0n })
  })

  test('leaves the transfer unchanged if a rival was recorded since the lookup, until both are looked up', async () => {
    const { id } = await record('1')
    const lookedUp = setOf(await findEnvelopes(db, [id]))
    await recordNamed(other, transferNamed('2', { account: PAYER }), limits, PLENTY)
    const given = { decision: decisionOf(null), lookedUp, now: NOW }
    expect(await settle(db, id, given)).toBeUndefined()
    expect(await statusOf('1')).toBe('open')
    const both = setOf(await findEnvelopes(db, [id]))
    expect(await settle(db, id, { ...given, lookedUp: both })).toMatchObject({ status: 'expired' })
  })

  test('waits for a rival that is being recorded, and then includes it', async () => {
    const { id } = await record('1')
    const lookedUp = setOf(await findEnvelopes(db, [id]))
    const isLocked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const recording = db.transaction(async (tx) => {
      const recorded = recordNamed(tx, transferNamed('2', { account: PAYER }), limits, PLENTY)
      await recorded
      isLocked.resolve()
      await goOn.promise
    })
    await isLocked.promise
    const given = { decision: decisionOf(null), lookedUp, now: NOW }
    const settling = settle(other, id, given)
    goOn.resolve()
    await recording
    expect(await settling).toBeUndefined()
    expect(await statusOf('1')).toBe('open')
  })

  test('throws for a transfer that was never recorded', async () => {
    const given = { decision: decisionOf(null), lookedUp: '', now: NOW }
    const unheard = '00000000-0000-4000-8000-000000000000'
    expect(await thrownBy(() => settle(db, unheard, given))).toMatchObject({
      message: 'a transfer that was never recorded cannot be settled',
    })
  })
})

test('lists the open ones, oldest first', async () => {
  const made: Transfer[] = []
  for (const name of ['1', '2', '3', '4', '5']) made.push(await record(name))
  await settleAs('1', SUCCESS)
  await settleAs('3', null)
  await settleAs('4', FAILURE)
  // The rows are written in reverse order: only their creation time counts.
  const [, two, , , five] = made
  await db
    .update(transfers)
    .set({ createdAt: new Date('2020-01-01T00:00:00Z') })
    .where(eq(transfers.id, five?.id ?? ''))
  expect(await findOpenTransfers(db)).toEqual([five?.id, two?.id])
  expect(new Set(made.map(({ status }) => status))).toEqual(new Set(['open']))
  expect(TRANSFER_STATUSES).toHaveLength(5)
})

test('returns the ledger of the account’s last applied transfer', async () => {
  expect(await lastLedgerOf(db, PAYER)).toBe(0)
  await record('1')
  await settleAs('1', SUCCESS)
  await record('2', { account: PAYER, sequenceNumber: 9n })
  await settleAs('2', null)
  expect(await lastLedgerOf(db, PAYER)).toBe(SUCCESS.ledger)
  // The first one failed without using up its number.
  for (const [name, ledger] of [
    ['3', 106],
    ['4', 107],
  ] as const) {
    await record(name, { account: PAYER, sequenceNumber: 10n })
    await settleAs(name, { ...SUCCESS, ledger })
    expect(await lastLedgerOf(db, PAYER)).toBe(ledger)
  }
})

test('erases the signed envelope of a transfer a day after its end, and no earlier', async () => {
  const old = new Date(NOW.getTime() - 86_400_000 - 1)
  for (const name of ['old', 'open', 'new']) await record(name)
  await db.update(envelopes).set({ recordedAt: old })
  await settleAs('old', SUCCESS, old)
  await settleAs('new', SUCCESS, new Date(old.getTime() + 1))
  expect(await eraseOldEnvelopes(db, NOW)).toBe(1)
  const left = await db.select().from(envelopes)
  const signedOf = (name: string) => left.find(({ innerHash }) => innerHash === transferNamed(name).innerHash)?.signed
  expect([signedOf('old'), signedOf('open'), signedOf('new')]).toEqual([null, 'AAAA', 'AAAA'])
  expect(await eraseOldEnvelopes(db, NOW)).toBe(0)
})

// PGlite has one connection: its statements never overlap.
describe.each(inject('postgres') ? [1, 2, 3] : [1])('seed %d', (seed) => {
  test('keeps the quotas equal to the sums of the transfers under concurrent requests', async () => {
    const given = {
      transfersPerAccount: 14,
      stroopsPerAccount: 9n * BID,
      dailyBudget: 30n * BID,
      callsBudget: 30n * BID,
    }
    const seen = new Map<string, number>()
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)

    async function work(worker: number): Promise<void> {
      const random = seededRandom(1000 * seed + worker)
      const database = worker % 2 ? db : other
      for (let step = 0; step < 50; step += 1) {
        // Names are shared between the workers: they record, send and settle the same transfers.
        const name = `${random(150)}`
        const transfer = transferNamed(name, {
          kind: random(3) ? 'transfer' : 'merge',
          quotaAccount: `payer ${random(4)}`,
          sponsor: `sponsor ${random(2)}`,
          createdAt: new Date(`${random(5) ? DAY : '2026-05-02'}T12:00:00Z`),
          bid: BID / 2n + BigInt(random(Number(BID))),
        })
        const what = random(10)
        if (what < 5) {
          try {
            count((await recordNamed(database, transfer, given, 20n * BID)).kind)
          } catch (error) {
            if (!(error instanceof SponsorRefusal)) throw error
            count(error.reason)
          }
        } else if (await findTransferOfHash(database, transfer.innerHash)) {
          if (what < 6) await sendNamed(database, transfer)
          else {
            const outcome = [SUCCESS, FAILURE, OWN, null][random(4)] ?? null
            count((await settleNamed(database, transfer.innerHash, outcome, NOW)).status)
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
    for (const what of ['begun', 'known', 'succeeded', 'failed', 'expired'])
      expect(seen.get(what), what).toBeGreaterThan(0)
    expect(
      [...seen.keys()].some((what) => ['quota-transfers', 'quota-stroops', 'daily-budget', 'float'].includes(what)),
    ).toBe(true)

    for (const id of await findOpenTransfers(db)) {
      const [envelope] = await findEnvelopes(db, [id])
      await settleNamed(db, envelope?.innerHash ?? '', null, NOW)
    }
    for (const [whose, held] of Object.entries(await readQuotas(db))) {
      expect(Array.isArray(held) ? held[0] : held, whose).toBe(0n)
    }
    expect(await findDiscrepancies(db)).toEqual([])
  })
})

test('detects a bid that differs in the check of the quotas', async () => {
  await record('1')
  await db.update(transfers).set({ bid: BID + 1n })
  const found = new Set(await findDiscrepancies(db))
  const days = [
    { account: '*', day: DAY },
    { account: 'payer', day: DAY },
    { account: 'sponsor', day: 'float' },
  ]
  expect(found).toEqual(new Set(days))
})
