import { eq, sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { batchItems, ITEM_STATUSES, relayChannels } from '#drizzle/schema/relay.ts'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import { batchRow, contractorRow, insertRows, itemRow, jobRow, organisationRow, payoutRow } from '#lib/cli/seed/rows.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { cancelReservation, release, reserve } from '#lib/relay/channel.ts'
import { isAnyAble, STALE_AFTER_MS } from '#lib/relay/channel-state.ts'
import { resumeItems } from '#lib/relay/chores.ts'
import { end, requeue, storeSigned, take as takeItem } from '#lib/relay/item.ts'
import { findItem, ITEM_MOVES, type Item, type ItemId, isItem } from '#lib/relay/item-row.ts'
import type { ItemQueue } from '#lib/relay/queue.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { type ItemFixture, LATER, NOW, openItemFixture } from './item-fixture.ts'

let fixture: ItemFixture
let db: Database
let queue: ItemQueue
let relayWith: ItemFixture['relayWith']
let makeChannels: ItemFixture['makeChannels']
let makeJob: ItemFixture['makeJob']
let makeItem: ItemFixture['makeItem']
let take: ItemFixture['take']
let sign: ItemFixture['sign']
let bind: ItemFixture['bind']
let settle: ItemFixture['settle']
let statusOf: ItemFixture['statusOf']
let jobOf: ItemFixture['jobOf']
let channelOf: ItemFixture['channelOf']
beforeAll(async () => {
  fixture = await openItemFixture()
  ;({ db, queue, relayWith, makeChannels, makeJob, makeItem, take, sign, bind, settle, statusOf, jobOf, channelOf } =
    fixture)
})
afterAll(() => fixture?.close())

test('the table of moves has every status, and none leads out of a final one', () => {
  expect(Object.keys(ITEM_MOVES).sort()).toEqual([...ITEM_STATUSES].sort())
  expect([ITEM_MOVES.paid, ITEM_MOVES.failed, ITEM_MOVES.unknown]).toEqual([[], [], []])
})

describe('a channel', () => {
  test('may have enough for an item while a running relay announces it, unless the item has tried it', async () => {
    await makeChannels('A', 'B')
    const isAble = (...unable: string[]) => isAnyAble(relayWith(), unable)
    expect([await isAble(), await isAble('A'), await isAble('A', 'B')]).toEqual([true, true, false])
    await db
      .update(relayChannels)
      .set({ seenAt: sql`clock_timestamp() - make_interval(secs => ${STALE_AFTER_MS / 1000})` })
    expect(await isAble()).toBe(false)
  })

  test('is not given to a doubted item before the item’s pause is over', async () => {
    await makeChannels('A')
    const item = await take(await makeItem(), 'A')
    await requeue(relayWith(), item, { because: 'doubted', ledger: 7, pauseSeconds: 3_600 })
    expect(await takeItem(relayWith('A'), item)).toBe('doubted')
    await db.update(batchItems).set({ doubtedUntil: sql`clock_timestamp()` }).where(isItem(item))
    expect(await takeItem(relayWith('A'), item)).toMatchObject({ channel: 'A', doubtedLedger: 7 })
  })

  test('is held by one item, which holds no other, when many workers take items at once', async () => {
    await makeChannels('A', 'B', 'C')
    const items = await makeJob(8)
    const relays = [relayWith('A', 'B', 'C'), relayWith('C', 'B', 'A')]
    const taken = await Promise.all(items.flatMap((item) => relays.map((relay) => takeItem(relay, item))))
    const held = taken.flatMap((each) => (typeof each === 'string' ? [] : [each]))
    expect(new Set(held.map(({ channel }) => channel))).toEqual(new Set(['A', 'B', 'C']))
    expect(new Set(held.map(({ position, channel }) => `${position} ${channel}`)).size).toBe(3)
    expect(taken.filter((each) => each === 'busy').length).toBeGreaterThanOrEqual(10)
  })

  test('is not acquired while it is paused', async () => {
    await makeChannels('A')
    const item = await makeItem()
    await db.update(relayChannels).set({ paused: true })
    expect(await takeItem(relayWith('A'), item)).toBe('unfit')
    await db.update(relayChannels).set({ paused: false })
    expect((await take(item, 'A')).channel).toBe('A')
  })

  test('is not acquired if it has a problem, too little for the item, or another host’s seed', async () => {
    await makeChannels('A', 'B', 'C')
    await db.update(relayChannels).set({ problem: 'registration' }).where(eq(relayChannels.address, 'A'))
    const item = await makeItem()
    expect(await takeItem(relayWith('A'), item)).toBe('unfit')
    const taken = await take(item, 'A', 'B')
    expect(taken.channel).toBe('B')
    expect(await requeue(relayWith(), taken, { because: 'balance-short' })).toBe(true)
    expect(await takeItem(relayWith('A', 'B'), item)).toBe('unfit')
    expect((await take(item, 'A', 'B', 'C')).channel).toBe('C')
  })

  test('stays with its item when another worker takes the item under a new attempt', async () => {
    await makeChannels('A', 'B')
    const first = await take(await makeItem(), 'A')
    const second = await take(first, 'A', 'B')
    expect([second.channel, second.attempt]).toEqual(['A', first.attempt + 1])
  })

  test('is released when a relay without its seed takes an unsigned item, and kept by a signed one', async () => {
    await makeChannels('A', 'B')
    const item = await take(await makeItem(), 'A')
    expect((await take(item, 'B')).channel).toBe('B')
    expect(await channelOf('A')).toMatchObject({ itemJob: null })
    const signed = await sign(await take(item, 'B'), 'elsewhere')
    expect(await take(signed, 'A')).toMatchObject({ channel: 'B', status: 'signed' })
    const other = await take(await makeItem(), 'A')
    expect(await takeItem(relayWith('C'), other)).toBe('unfit')
    expect(await statusOf(other)).toBe('queued')
    expect(await channelOf('A')).toMatchObject({ itemJob: null })
  })

  test('is released by every ending of its item', async () => {
    await makeChannels('A')
    const ends: ((item: Item) => Promise<unknown>)[] = [
      (item) => end(relayWith(), item, { status: 'paid', hash: 'hash' }),
      (item) => end(relayWith(), item, { status: 'failed', error: 'why' }),
      (item) => requeue(relayWith(), item, { because: 'handed-over' }),
      (item) => end(relayWith(), item, { status: 'unknown' }),
    ]
    for (const [index, end] of ends.entries()) {
      const item = await sign(await take(await makeItem(), 'A'), `end ${index}`)
      expect(await channelOf('A')).toMatchObject({ itemJob: item.job, itemPosition: 0 })
      await end(item)
      expect(await channelOf('A')).toMatchObject({ itemJob: null, itemPosition: null })
    }
  })
})

test('suspends the items that a moved channel may have paid, including taken ones, and no later one', async () => {
  await makeChannels('A', 'B')
  const [waiting, held, late] = [await makeItem(), await makeItem(), await makeItem()]
  const taken = await take(held, 'A')
  await db.update(relayChannels).set({ problem: 'moved', movedAt: LATER }).where(eq(relayChannels.address, 'B'))
  await db
    .update(batchItems)
    .set({ queuedAt: new Date(LATER.getTime() + 1) })
    .where(isItem(late))
  const signed = { innerHash: 'suspended', signedXdr: 'xdr', sealedOpening: 'sealed', sequenceNumber: 1n }
  await expect(storeSigned(relayWith('A'), taken, signed)).rejects.toMatchObject({ code: 'item-suspended' })
  expect(await takeItem(relayWith('A'), held)).toBe('suspended')
  expect(await findItem(db, held)).toMatchObject({ status: 'queued', channel: null, innerHash: null })
  expect(await takeItem(relayWith('A'), waiting)).toBe('suspended')
  expect((await take(late, 'A')).channel).toBe('A')
})

/** An item of a run for each employer, bound to channel A, and queued in this order. */
async function makeRuns(...employers: string[]): Promise<ItemId[]> {
  const organisation = organisationRow()
  const contractor = contractorRow({ organisation: organisation.id })
  const runs = employers.map((quotaAccount, index) => {
    const batch = batchRow({ organisation: organisation.id })
    const payout = payoutRow({ organisation: organisation.id, batch: batch.id, contractor: contractor.id })
    const job = jobRow({ userSub: quotaAccount })
    const queuedAt = new Date(NOW.getTime() + index)
    return {
      batch,
      payout,
      job,
      item: itemRow({ job: job.id, payout: payout.id, spender: 'A', quotaAccount, queuedAt }),
    }
  })
  await insertRows(db, {
    organisations: [organisation],
    contractors: [contractor],
    batches: runs.map(({ batch }) => batch),
    payouts: runs.map(({ payout }) => payout),
    jobs: runs.map(({ job }) => job),
    items: runs.map(({ item }) => item),
  })
  return runs.map(({ item: { job, position } }) => ({ job, position }))
}

test('suspended items of one employer do not block those of another', async () => {
  await makeChannels('A', 'B')
  const [suspended, later] = await makeRuns('first', 'second')
  if (!suspended || !later) throw new Error('no items')
  await db.update(relayChannels).set({ problem: 'moved', movedAt: NOW }).where(eq(relayChannels.address, 'B'))
  expect(await takeItem(relayWith('A'), suspended)).toBe('suspended')
  expect((await take(later, 'A')).channel).toBe('A')
})

test('no item fails before the channels were compared with the ledger, as after a restore', async () => {
  await makeChannels('A', 'B')
  const item = await makeItem()
  const dayLater = { ...relayWith('A'), now: () => new Date(NOW.getTime() + 25 * 60 * 60_000) }
  for (const comparedAt of [null, new Date(NOW.getTime() + 23 * 60 * 60_000)]) {
    await db.update(relayChannels).set({ comparedAt }).where(eq(relayChannels.address, 'B'))
    await resumeItems(dayLater)
    expect(await statusOf(item)).toBe('queued')
  }
  await db.update(relayChannels).set({ comparedAt: dayLater.now() })
  await resumeItems(dayLater)
  expect(await statusOf(item)).toBe('failed')
})

test('an item that a moved channel may have paid does not fail, however long it waits', async () => {
  await makeChannels('A', 'B')
  const [suspended, late] = [await makeItem(), await makeItem()]
  const taken = await take(await makeItem(), 'A')
  await db.update(relayChannels).set({ problem: 'moved', movedAt: NOW }).where(eq(relayChannels.address, 'B'))
  await db
    .update(batchItems)
    .set({ queuedAt: new Date(NOW.getTime() + 1) })
    .where(isItem(late))
  const dayLater = { ...relayWith('A'), now: () => new Date(NOW.getTime() + 25 * 60 * 60_000) }
  await resumeItems(dayLater)
  expect([await statusOf(suspended), await statusOf(taken), await statusOf(late)]).toEqual([
    'queued',
    'taken',
    'failed',
  ])
})

describe('the next item of a channel', () => {
  test('gets the channel in the transaction that ends the previous item', async () => {
    await makeChannels('A')
    const [one, two, three] = await makeJob(3)
    if (!one || !two || !three) throw new Error('an item is missing')
    const first = await sign(await take(one, 'A'), `${one.job} first`)
    const second = await findItem(db, two)
    const third = await findItem(db, three)
    if (!second || !third) throw new Error('an item is missing')
    const reserved = await reserve(relayWith('A'), second, first)
    expect(reserved).toMatchObject({ status: 'queued', attempt: second.attempt + 1 })
    expect(await reserve(relayWith('A'), third, first)).toBeUndefined()
    expect(await takeItem(relayWith('A'), three)).toBe('busy')
    await end(relayWith('A'), first, { status: 'paid', hash: 'hash' })
    expect(await channelOf('A')).toMatchObject({ itemPosition: 1, nextJob: null, sealedOpening: first.sealedOpening })
    expect(await findItem(db, two)).toMatchObject({ status: 'taken', channel: 'A' })
    expect(await takeItem(relayWith('A'), three)).toBe('busy')
    expect((await take(two, 'A')).channel).toBe('A')
  })

  test('does not get a channel that has a problem, nor one whose reservation was canceled', async () => {
    await makeChannels('A')
    const [one, two] = await makeJob(2)
    if (!one || !two) throw new Error('an item is missing')
    for (const spoil of ['fault', 'cancel'] as const) {
      const first = await take(one, 'A')
      const second = await findItem(db, two)
      if (!second) throw new Error('an item is missing')
      await reserve(relayWith('A'), second, first)
      if (spoil === 'fault') await db.update(relayChannels).set({ problem: 'account' })
      else await cancelReservation(relayWith('A'), second)
      await requeue(relayWith('A'), first, { because: 'handed-over' })
      expect(await statusOf(two)).toBe('queued')
      expect(await channelOf('A')).toMatchObject({ itemJob: null, nextJob: null })
      await db.update(relayChannels).set({ problem: null })
    }
  })
})

test('keeps one message per item, and makes the oldest waiting item’s due when a channel is released', async () => {
  await makeChannels('A')
  const [one, two] = await makeJob(2)
  if (!one || !two) throw new Error('an item is missing')
  const later = { ...two, seconds: 3_600 }
  await transact(db, (tx) => queue.send(tx, [one, later]))
  await transact(db, (tx) => queue.send(tx, [one, two]))
  const due = async () => {
    const query = `SELECT (data->>'position')::int AS position, start_after <= now() AS due FROM pgboss.job
      WHERE data->>'job' = '${one.job}' AND state < 'active' ORDER BY 1`
    return ((await db.execute(query)) as unknown as { rows: { position: number; due: boolean }[] }).rows
  }
  expect(await due()).toEqual([
    { position: 0, due: true },
    { position: 1, due: false },
  ])
  const item = await take(one, 'A')
  await end(relayWith('A'), item, { status: 'failed', error: 'why' })
  expect(await due()).toEqual([
    { position: 0, due: true },
    { position: 1, due: true },
  ])
  await transact(db, (tx) => release(tx, relayWith('A'), item))
})

test('gives priority to the message of an item that holds a channel, even after its worker died', async () => {
  await makeChannels('A')
  const [one, two] = await makeJob(2)
  if (!one || !two) throw new Error('an item is missing')
  await transact(db, (tx) => queue.send(tx, [one, two]))
  await take(two, 'A')
  // As pg-boss leaves the messages of a worker that died.
  await db.execute(`UPDATE pgboss.job SET state = 'retry' WHERE data->>'job' = '${one.job}'`)
  await resumeItems(relayWith('A'))
  const query = `SELECT (data->>'position')::int AS position FROM pgboss.job
    WHERE data->>'job' = '${one.job}' AND state < 'active' ORDER BY priority DESC, created_on, position`
  expect(((await db.execute(query)) as unknown as { rows: unknown[] }).rows).toEqual([{ position: 1 }, { position: 0 }])
})

test('rejects writes of an earlier attempt', async () => {
  await makeChannels('A')
  const id = await makeItem()
  const old = await sign(await take(id, 'A'), 'old')
  expect(await requeue(relayWith(), old, { because: 'handed-over' })).toBe(true)
  const fresh = await take(id, 'A')
  expect(fresh.attempt).toBe(old.attempt + 1)
  const stale = { innerHash: 'stale', signedXdr: 'xdr', sealedOpening: 'sealed', sequenceNumber: 2n }
  await expect(storeSigned(relayWith(), { ...old, status: 'taken' }, stale)).rejects.toMatchObject({
    code: 'item-gone',
  })
  const signed = await sign(fresh, 'fresh')
  await expect(bind(old)).rejects.toMatchObject({ code: 'item-gone' })
  expect(await findTransferOfHash(db, 'old')).toBeUndefined()
  await end(relayWith(), old, { status: 'paid', hash: 'hash' })
  expect(await requeue(relayWith(), old, { because: 'handed-over' })).toBe(false)
  expect(await end(relayWith(), old, { status: 'failed', error: 'why' })).toBe(false)
  expect(await findItem(db, signed)).toMatchObject({ status: 'signed', innerHash: 'fresh' })
  expect(await channelOf('A')).toMatchObject({ itemJob: id.job })
})

describe('a recorded transfer holds its item', () => {
  async function bindAs(status: TransferStatus): Promise<Item> {
    await makeChannels('A')
    const item = await sign(await take(await makeItem(), 'A'), `bound ${status}`)
    await bind(item)
    await settle(item, status)
    return item
  }

  test.each(['open', 'succeeded'] as const)('while it is %s', async (status) => {
    const item = await bindAs(status)
    expect(await requeue(relayWith(), item, { because: 'handed-over' })).toBe(false)
    expect(await end(relayWith(), item, { status: 'failed', error: 'why' })).toBe(false)
    expect(await statusOf(item)).toBe('signed')
    expect(await channelOf('A')).toMatchObject({ itemJob: item.job })
  })

  test.each(['failed', 'expired'] as const)('until it is %s', async (status) => {
    const item = await bindAs(status)
    expect(await requeue(relayWith(), item, { because: 'transfer-failed', hash: 'failed hash' })).toBe(true)
    const returned = { status: 'queued', channel: null, signedXdr: null, hash: 'failed hash', failures: 1 }
    expect(await findItem(db, item)).toMatchObject(returned)
  })
})

test('either records the transfer or requeues the item when both happen at once', async () => {
  await makeChannels('A')
  for (let round = 0; round < 40; round += 1) {
    const item = await sign(await take(await makeItem(), 'A'), `race ${round}`)
    const [bound, returned] = await Promise.allSettled([
      bind(item),
      requeue(relayWith(), item, { because: 'handed-over' }),
    ])
    const isBound = bound.status === 'fulfilled'
    const isReturned = returned.status === 'fulfilled' && returned.value
    expect([isBound, isReturned]).toEqual([isBound, !isBound])
    expect(await statusOf(item)).toBe(isBound ? 'signed' : 'queued')
    if (isBound) await end(relayWith(), item, { status: 'paid', hash: `hash ${round}` })
  }
})

test('closes the job once when its items end at the same time', async () => {
  await makeChannels('A', 'B', 'C', 'D')
  for (let round = 0; round < 10; round += 1) {
    const ids = await makeJob(4)
    const items = await Promise.all(ids.map(async (id) => sign(await take(id, 'A', 'B', 'C', 'D'), JSON.stringify(id))))
    const [first, ...others] = items
    if (!first) throw new Error('no item')
    await Promise.all([
      end(relayWith(), first, { status: 'failed', error: 'it would not do' }),
      ...others.map((item) => end(relayWith(), item, { status: 'paid', hash: `hash ${item.innerHash}` })),
    ])
    const error = `transfer ${first.position}: it would not do`
    expect(await jobOf(first.job)).toMatchObject({ status: 'failed', error, endedAt: LATER })
    for (const item of items) {
      expect(await findItem(db, item)).toMatchObject({ sealedAmount: null, sealedOpening: null, signedXdr: null })
    }
  }
})

test('does not change an item that has ended', async () => {
  await makeChannels('A')
  const item = await sign(await take(await makeItem(), 'A'), 'once')
  await end(relayWith(), item, { status: 'paid', hash: 'first' })
  await end(relayWith(), item, { status: 'paid', hash: 'second' })
  expect(await end(relayWith(), item, { status: 'failed', error: 'why' })).toBe(false)
  expect(await takeItem(relayWith('A'), item)).toBe('ended')
  expect(await findItem(db, item)).toMatchObject({ status: 'paid', hash: 'first' })
  expect(await jobOf(item.job)).toMatchObject({ status: 'completed', error: null, endedAt: LATER })
})

test('ends an item as unknown, and fails its job, when the history is lost', async () => {
  await makeChannels('A')
  const item = await sign(await take(await makeItem(), 'A'), 'lost')
  await bind(item)
  expect(await end(relayWith(), item, { status: 'unknown' })).toBe(true)
  expect(await findItem(db, item)).toMatchObject({ status: 'unknown', sealedAmount: null })
  expect(await jobOf(item.job)).toMatchObject({ status: 'failed' })
})
