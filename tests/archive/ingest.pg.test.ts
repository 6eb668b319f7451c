import { asc } from 'drizzle-orm'
import { beforeEach, describe, expect, test } from 'vitest'
import { archiveEvents, archiveStreams } from '#drizzle/schema/archive.ts'
import { paymentStops } from '#drizzle/schema/relay.ts'
import { idOf } from '#lib/archive/event.ts'
import { type Archive, openArchive, readTokenEvents } from '#lib/archive/history.ts'
import { FOREIGN, foreignSince, isForeignNetwork } from '#lib/archive/identity.ts'
import { ingest, ingestSoon } from '#lib/archive/ingest.ts'
import { covers } from '#lib/archive/ranges.ts'
import { archiveFamilies } from '#lib/dashboard/ledger-metrics.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { lockPayments } from '#lib/transfers/stop.ts'
import { accountAt, CONTRACTS } from '../support/event-rpc.ts'
import { context, db, fake, serveFakeArchive } from './fake-archive.ts'

serveFakeArchive()

/** Adds `count` transfers starting in ledger `first`, three to a ledger. */
function addTransfers(count: number, first = 2): void {
  for (let index = 0; index < count; index += 1) {
    fake.add(first + Math.floor(index / 3), 'transfer', [accountAt(index % 5), accountAt((index + 1) % 7)])
  }
}

async function storedIds(): Promise<string[]> {
  const rows = await db
    .select({ toid: archiveEvents.toid, eventIndex: archiveEvents.eventIndex })
    .from(archiveEvents)
    .orderBy(asc(archiveEvents.toid), asc(archiveEvents.eventIndex))
  return rows.map(({ toid, eventIndex }) => idOf(toid, eventIndex))
}

async function archive(): Promise<Archive> {
  const opened = await openArchive(db, CONTRACTS.token)
  if (!opened) throw new Error('nothing is archived')
  return opened
}

const servedIds = () => fake.events.map(({ id }) => id)

/** Checks the archive: a range it reports as complete has all of the network's events, in order and once. */
async function expectTruth(): Promise<void> {
  const opened = await archive()
  const stored = await storedIds()
  expect(new Set(stored).size).toBe(stored.length)
  for (const { fromLedger, throughLedger } of opened.ranges) {
    const isWithin = (id: string) => {
      const ledger = Number(BigInt(id.slice(0, 19)) >> 32n)
      return ledger >= fromLedger && ledger <= throughLedger
    }
    expect(stored.filter(isWithin)).toEqual(servedIds().filter(isWithin))
  }
}

async function ingestUntilDone(): Promise<void> {
  for (let round = 0; round < 200; round += 1) {
    await ingest(context).catch(() => undefined)
    const opened = await openArchive(db, CONTRACTS.token)
    if (opened && covers(opened.ranges, fake.oldestLedger, fake.latestLedger)) return
  }
  throw new Error('ingestion does not end')
}

describe('ingestion', () => {
  test('stores every event once, in order, byte for byte', async () => {
    addTransfers(2_500)
    expect(await ingest(context)).toBe(2_500)
    expect(await storedIds()).toEqual(servedIds())
    const query = { fromLedger: 1, toLedger: fake.latestLedger, after: undefined, limit: 3 }
    const { events, complete } = await readTokenEvents(db, await archive(), query)
    expect(complete).toBe(true)
    expect(events.map(({ topics_xdr, data_xdr, tx_hash }) => [topics_xdr, data_xdr, tx_hash])).toEqual(
      fake.events.slice(0, 3).map(({ topic, value, txHash }) => [topic, value, txHash]),
    )
  })

  test('resumes where it stopped, page by page', async () => {
    addTransfers(3_500)
    const counts: number[] = []
    do counts.push(await ingest(context, { maxPages: 1 }))
    while (counts.at(-1))
    expect(counts.length).toBeGreaterThan(3)
    expect(await storedIds()).toEqual(servedIds())
    addTransfers(10, fake.latestLedger + 1)
    expect(await ingest(context)).toBe(10)
    await expectTruth()
  })

  test('stores a ledger with more events than a page', async () => {
    for (let index = 0; index < 2_300; index += 1) fake.add(5, 'deposit', [accountAt(1), accountAt(2)])
    addTransfers(20, 6)
    await ingest(context)
    expect(await storedIds()).toEqual(servedIds())
  })

  test('reads past thousands of ledgers without an event', async () => {
    fake.scan = 100
    addTransfers(3)
    addTransfers(3, 950)
    fake.latestLedger = 1_203
    await ingest(context)
    expect(await storedIds()).toEqual(servedIds())
    expect(await archive()).toMatchObject({ firstLedger: 1, ingestedThrough: 1_203 })
  })

  test('does not store a ledger that is only partly in a truncated page', async () => {
    addTransfers(300)
    let turn = 0
    fake.distort = (answer) => {
      turn += 1
      if (turn % 2 === 0 || answer.events.length < 5) return answer
      const events = answer.events.slice(0, -4)
      return { ...answer, events, cursor: events.at(-1)?.id ?? answer.cursor }
    }
    await ingestUntilDone()
    expect(await storedIds()).toEqual(servedIds())
  })

  test('sorts events that arrive out of order, and drops repetitions', async () => {
    addTransfers(2_100)
    fake.distort = (answer) => ({ ...answer, events: [...answer.events.toReversed(), ...answer.events.slice(0, 9)] })
    await ingestUntilDone()
    expect(await storedIds()).toEqual(servedIds())
  })

  test('trusts a lagging node only up to its latest ledger', async () => {
    addTransfers(90)
    const latest = fake.latestLedger
    fake.distort = (answer) => {
      const latestLedger = latest - 10
      const events = answer.events.filter(({ ledger }) => ledger <= latestLedger)
      return { ...answer, events, latestLedger, cursor: answer.cursor }
    }
    await ingest(context)
    expect((await archive()).ingestedThrough).toBe(latest - 10)
    await expectTruth()
    fake.distort = undefined
    await ingest(context)
    expect(await storedIds()).toEqual(servedIds())
  })

  test('refuses a page with events of another contract or of ledgers that were not requested', async () => {
    addTransfers(9)
    for (const change of [{ contractId: CONTRACTS.auditor }, { ledger: 4 }]) {
      fake.distort = (answer) => ({ ...answer, events: answer.events.map((event) => ({ ...event, ...change })) })
      await expect(ingest(context)).rejects.toMatchObject({ code: 'unavailable' })
      expect(await openArchive(db, CONTRACTS.token)).toBeUndefined()
    }
  })

  test('survives requests that fail at any point', async () => {
    fake.scan = 50
    addTransfers(1_200)
    let turn = 0
    fake.distort = (answer) => {
      turn += 1
      return turn % 3 === 0 ? undefined : answer
    }
    await ingestUntilDone()
    expect(await storedIds()).toEqual(servedIds())
  })

  test('loses, repeats and misorders nothing when three rounds run at once', async () => {
    fake.scan = 40
    addTransfers(1_500)
    // Without the claims, the conditional writes alone keep the rows correct.
    const racing = { ...context, database: async () => db }
    for (let round = 0; round < 4; round += 1) {
      const freed = setInterval(() => void db.update(archiveStreams).set({ claimedUntil: null }).then(), 5)
      await Promise.allSettled([
        ingest(racing, { maxPages: 4 }),
        ingest(racing, { maxPages: 4 }),
        ingest(racing, { maxPages: 4 }),
      ])
      clearInterval(freed)
      await expectTruth()
    }
    await ingestUntilDone()
    expect(await storedIds()).toEqual(servedIds())
  })

  test('leaves a stream to the process that has claimed it', async () => {
    addTransfers(9)
    await ingest(context)
    await db.execute(`UPDATE archive_streams SET claimed_until = clock_timestamp() + interval '1 minute'`)
    addTransfers(9, fake.latestLedger + 1)
    expect(await ingest(context)).toBe(0)
    await db.execute(`UPDATE archive_streams SET claimed_until = clock_timestamp() - interval '1 second'`)
    expect(await ingest(context)).toBe(9)
  })

  test('ingests the registries of the token', async () => {
    fake.add(2, 'register_key', [], CONTRACTS.auditor)
    fake.add(3, 'auditor_set', [CONTRACTS.auditor])
    fake.add(4, 'register_key', [], CONTRACTS.auditor)
    await ingest(context)
    await ingest(context)
    const streams = await db.select().from(archiveStreams)
    expect(streams.map(({ contract, role }) => [contract, role])).toEqual([
      [CONTRACTS.token, 'token'],
      [CONTRACTS.auditor, 'registry'],
    ])
    expect(await storedIds()).toEqual(servedIds())
  })
})

test('reports how far the archive is behind, and how much history is left', async () => {
  addTransfers(300)
  Object.assign(fake, { oldestLedger: 2, latestLedger: 101 })
  const figures = async () => {
    const families = await archiveFamilies(context)
    return families.map(({ samples: [sample] }) => Number(sample?.value.toFixed(2)))
  }
  expect(await figures()).toEqual([100, 0, 0])
  await ingest(context)
  expect(await figures()).toEqual([0, 1, 0])
  fake.latestLedger = 201
  expect(await figures()).toEqual([100, 0.5, 0])
  fake.oldestLedger = 150
  expect(await figures()).toEqual([100, 0, 0])
  await ingest(context)
  expect(await figures()).toEqual([0, 1, 1])
})

describe('gaps', () => {
  test('reports ledgers that the RPC dropped before they were read as permanently missing', async () => {
    addTransfers(30)
    await ingest(context)
    addTransfers(300, fake.latestLedger + 1)
    fake.oldestLedger = 40
    await ingest(context)
    await ingest(context)
    const { ranges } = await archive()
    expect(ranges.map(({ fromLedger, throughLedger }) => [fromLedger, throughLedger])).toEqual([
      [1, 11],
      [40, fake.latestLedger],
    ])
    const whole = { fromLedger: 1, toLedger: fake.latestLedger, after: undefined, limit: 1 }
    expect((await readTokenEvents(db, await archive(), whole)).complete).toBe(false)
    expect((await readTokenEvents(db, await archive(), { ...whole, fromLedger: 40 })).complete).toBe(true)
    await expectTruth()
  })

  test('fills a gap from an RPC that still has it, and joins the ranges', async () => {
    addTransfers(300)
    const latest = fake.latestLedger
    fake.latestLedger = 11
    await ingest(context)
    fake.latestLedger = latest
    fake.oldestLedger = 40
    await ingest(context)
    expect((await archive()).ranges).toHaveLength(2)
    fake.oldestLedger = 1
    await ingest(context)
    const { ranges } = await archive()
    expect(ranges.map(({ fromLedger, throughLedger }) => [fromLedger, throughLedger])).toEqual([[1, latest]])
    expect(await storedIds()).toEqual(servedIds())
  })
})

describe('another network', () => {
  const isForeign = async () => (await foreignSince(db, CONTRACTS.token)) !== undefined
  const expectForeign = async () => {
    await expect(ingest(context)).rejects.toMatchObject({ code: 'unavailable', message: FOREIGN })
    expect(await isForeign()).toBe(true)
    expect(await db.transaction((tx) => lockPayments(tx, CONTRACTS.token))).toBe(false)
  }
  beforeEach(() => db.delete(paymentStops))

  test('stops ingestion and payments if a known ledger has another hash, until it was a stray node', async () => {
    addTransfers(30)
    await ingest(context)
    const [{ events, salt }, stored] = [{ ...fake }, await storedIds()]
    Object.assign(fake, { events: [], salt: 'second' })
    addTransfers(60)
    await expectForeign()
    expect(await storedIds()).toEqual(stored)
    Object.assign(fake, { events, salt })
    await ingest(context)
    expect(await isForeign()).toBe(false)
    expect(await db.transaction((tx) => lockPayments(tx, CONTRACTS.token))).toBe(true)
    await expectTruth()
  })

  test('shows by ledgers that are lower and closed later', async () => {
    addTransfers(30, 500)
    fake.oldestLedger = 490
    await ingest(context)
    fake.events = []
    Object.assign(fake, { salt: 'second', oldestLedger: 1, latestLedger: 5, epoch: fake.epoch + 10_000 })
    addTransfers(6)
    await expectForeign()
  })

  test('shows although a known ledger is kept, and later ones are replaced', async () => {
    addTransfers(90)
    await ingest(context)
    Object.assign(fake, { events: [], latestLedger: 20, epoch: fake.epoch + 1_000 })
    await expectForeign()
  })

  test('is not a node that was restored from a backup of the same one', async () => {
    addTransfers(90)
    const latest = fake.latestLedger
    await ingest(context)
    fake.latestLedger = 8
    await ingest(context)
    expect([await isForeign(), (await archive()).ingestedThrough]).toEqual([false, latest])
    fake.latestLedger = latest
    addTransfers(9, latest + 1)
    await ingest(context)
    expect(await storedIds()).toEqual(servedIds())
  })

  test('is believed only when four responses in a row agree, but to prove that nothing was applied one is too many', async () => {
    addTransfers(30)
    await ingest(context)
    fake.strangeSalts = ['other']
    expect(await isForeignNetwork(db, context, undefined, 0)).toBe(true)
    fake.strangeSalts = ['other', 'other', 'other']
    await ingest(context)
    expect(fake.strangeSalts).toEqual([])
    expect(await isForeign()).toBe(false)
    await expectTruth()
  })

  test('has no page stored of it', async () => {
    addTransfers(30)
    fake.distort = (answer) => ({
      ...answer,
      events: answer.events.map((event) => ({ ...event, ledgerClosedAt: '2020-01-01T00:00:00Z' })),
    })
    await expect(ingest(context)).rejects.toMatchObject({ code: 'unavailable' })
    expect(await openArchive(db, CONTRACTS.token)).toBeUndefined()
  })
})

test('starts a background round at most once in half a minute', async () => {
  addTransfers(9)
  const lastRound = perProcess('archive round', (): { at?: number } => ({}))
  delete lastRound.at
  ingestSoon(context)
  await expect.poll(async () => (await openArchive(db, CONTRACTS.token))?.ingestedThrough).toBe(fake.latestLedger)
  const { requests } = fake
  ingestSoon(context)
  delete lastRound.at
  expect(fake.requests).toBe(requests)
})
