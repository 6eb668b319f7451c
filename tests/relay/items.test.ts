import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { batchItems, batchJobs, ITEM_STATUSES } from '#drizzle/schema/relay.ts'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { failItem, payItem, returnItem } from '#lib/relay/item-ending.ts'
import { confirmItem, findItem, ITEM_MOVES, type Item, storeSigned, takeItem } from '#lib/relay/items.ts'
import { recordTransfer } from '#lib/sponsor/transfer-record.ts'
import { cloneDatabase } from '../support/database.ts'

let postgres: Awaited<ReturnType<typeof cloneDatabase>>
let db: Database
beforeAll(async () => {
  postgres = await cloneDatabase()
  db = await postgres.store.database()
})
afterAll(() => postgres?.drop())

const NOW = new Date('2026-03-01T12:00:00Z')
const LATER = new Date('2026-03-01T12:00:05Z')

async function makeJob(count: number): Promise<string> {
  // Whatever an earlier test has left is not to be taken.
  await db
    .update(batchItems)
    .set({ status: 'failed', sealedAmount: null, signedXdr: null, sealedOpening: null, settledAt: NOW })
  const id = randomUUID()
  await db.insert(batchJobs).values({ id, userKind: 'ledger', userSub: id, createdAt: NOW })
  await db.insert(batchItems).values(
    Array.from({ length: count }, (_, position) => ({
      job: id,
      position,
      sealedAmount: 'sealed',
      quotaAccount: id,
      queuedAt: NOW,
    })),
  )
  return id
}

const signedBy = (name: string) => ({ innerHash: name, signedXdr: `xdr of ${name}`, sealedOpening: 'sealed' })

async function take(channel: string): Promise<Item> {
  const item = await takeItem(db, channel)
  if (!item) throw new Error('nothing to take')
  return item
}

async function sign(item: Item, name: string): Promise<Item> {
  const signed = await storeSigned(db, item, signedBy(name))
  if (!signed) throw new Error('not signed')
  return signed
}

/** The sponsor writes the item's transfer down, as it does it: the item is confirmed in the same transaction. */
const bind = (item: Item) =>
  recordTransfer(
    db,
    {
      innerHash: item.innerHash ?? '',
      outerHash: `outer ${item.innerHash}`,
      account: item.channel ?? '',
      recipient: 'R',
      sponsor: 'S',
      envelope: 'E',
      bid: 1n,
      maxTime: 1,
      quotaDay: '2026-03-01',
      sinceLedger: 1,
    },
    { transfersPerAccount: 1_000, stroopsPerAccount: 1_000n, dailyBudget: 100_000n },
    100_000n,
    { quotaAccount: item.quotaAccount, confirm: (tx) => confirmItem(tx, item, NOW) },
  )

const statusOf = async (item: Item) => (await findItem(db, item))?.status
const jobOf = async (id: string) => (await db.select().from(batchJobs).where(eq(batchJobs.id, id)))[0]

test('the table of moves names every status, and nothing leads out of the final ones', () => {
  expect(Object.keys(ITEM_MOVES).sort()).toEqual([...ITEM_STATUSES].sort())
  expect([ITEM_MOVES.paid, ITEM_MOVES.failed]).toEqual([[], []])
})

test('channels that take at once take different items, oldest first, and one each', async () => {
  const job = await makeJob(8)
  const taken = await Promise.all(Array.from({ length: 12 }, (_, index) => takeItem(db, `crowd ${index}`)))
  const positions = taken.flatMap((item) => (item ? [item.position] : []))
  expect(positions.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(taken.filter((item) => item?.job === job)).toHaveLength(8)
})

test('a channel does not take what it was unable to pay, others do', async () => {
  await makeJob(1)
  const item = await take('A')
  expect(await returnItem(db, item, { unable: true })).toBe(true)
  expect(await takeItem(db, 'A')).toBeUndefined()
  expect((await take('B')).unable).toEqual(['A'])
})

describe('what was begun under an earlier attempt has no more say', () => {
  test('it cannot store a transfer, bind the sponsor, pay, return or fail', async () => {
    await makeJob(1)
    const old = await sign(await take('A'), 'old')
    expect(await returnItem(db, old)).toBe(true)
    const fresh = await take('A')
    expect(fresh.attempt).toBe(old.attempt + 1)
    expect(await storeSigned(db, { ...old, status: 'taken' }, signedBy('stale'))).toBeUndefined()
    const signed = await sign(fresh, 'fresh')
    await expect(bind(old)).rejects.toThrow('no longer paid by this transfer')
    expect(
      await db.query.sponsoredTransfers.findFirst({ where: eq(sponsoredTransfers.innerHash, 'old') }),
    ).toBeUndefined()
    await payItem(db, old, 'hash', 'token', LATER)
    expect(await returnItem(db, old)).toBe(false)
    expect(await failItem(db, old, 'why', LATER)).toBe(false)
    expect(await findItem(db, signed)).toMatchObject({ status: 'signed', innerHash: 'fresh' })
  })
})

describe('a transfer that the sponsor is bound to holds its item', () => {
  test.each(['held', 'sent', 'success'] as const)('while it is %s', async (status) => {
    await makeJob(1)
    const item = await sign(await take('A'), `bound ${status}`)
    await bind(item)
    const settledAt = status === 'success' ? NOW : null
    await db
      .update(sponsoredTransfers)
      .set({ status, settledAt })
      .where(eq(sponsoredTransfers.innerHash, item.innerHash ?? ''))
    expect(await returnItem(db, item)).toBe(false)
    expect(await failItem(db, item, 'why', LATER)).toBe(false)
    expect(await statusOf(item)).toBe('signed')
  })

  test.each(['failed', 'dead'] as const)('until it is %s', async (status) => {
    await makeJob(1)
    const item = await sign(await take('A'), `bound ${status}`)
    await bind(item)
    await db
      .update(sponsoredTransfers)
      .set({ status, settledAt: NOW })
      .where(eq(sponsoredTransfers.innerHash, item.innerHash ?? ''))
    expect(await returnItem(db, item, { hash: 'failed hash' })).toBe(true)
    expect(await findItem(db, item)).toMatchObject({
      status: 'queued',
      channel: null,
      signedXdr: null,
      hash: 'failed hash',
    })
  })
})

test('to bind the sponsor and to give the item back at once: one of them, every time', async () => {
  const seen = { bound: 0, returned: 0 }
  for (let round = 0; round < 40; round += 1) {
    await makeJob(1)
    const item = await sign(await take('A'), `race ${round}`)
    const [bound, returned] = await Promise.allSettled([bind(item), returnItem(db, item)])
    const isBound = bound.status === 'fulfilled'
    const isReturned = returned.status === 'fulfilled' && returned.value
    expect([isBound, isReturned]).toEqual([isBound, !isBound])
    expect(await statusOf(item)).toBe(isBound ? 'signed' : 'queued')
    seen[isBound ? 'bound' : 'returned'] += 1
  }
  expect(seen.bound + seen.returned).toBe(40)
})

test('of items that end at once the last closes the job, whichever it is', async () => {
  for (let round = 0; round < 10; round += 1) {
    const job = await makeJob(4)
    const items = await Promise.all(['A', 'B', 'C', 'D'].map(async (name) => sign(await take(name), `${job} ${name}`)))
    const [first, ...others] = items
    if (!first) throw new Error('no item')
    await Promise.all([
      failItem(db, first, 'it would not do', LATER),
      ...others.map((item) => payItem(db, item, `hash ${item.innerHash}`, 'token', LATER)),
    ])
    expect(await jobOf(job)).toMatchObject({
      status: 'failed',
      error: `transfer ${first.position}: it would not do`,
      endedAt: LATER,
    })
    for (const item of items) {
      expect(await findItem(db, item)).toMatchObject({ sealedAmount: null, sealedOpening: null, signedXdr: null })
    }
  }
})

test('an item that has ended stays as it is', async () => {
  const job = await makeJob(1)
  const item = await sign(await take('A'), `${job} once`)
  await payItem(db, item, 'first', 'token', NOW)
  await payItem(db, item, 'second', 'token', LATER)
  expect(await failItem(db, item, 'why', LATER)).toBe(false)
  expect(await findItem(db, item)).toMatchObject({ status: 'paid', hash: 'first', settledAt: NOW })
  expect(await jobOf(job)).toMatchObject({ status: 'completed', error: null, endedAt: NOW })
})
