import { asc } from 'drizzle-orm'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { archiveEvents, archiveStreams } from '#drizzle/schema/archive.ts'
import { idOf } from '#lib/archive/event.ts'
import { openArchive, readAccountEvents, readCoverage, readTokenEvents } from '#lib/archive/history.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { captureLog } from '../support/console.ts'
import { accountAt, CONTRACTS, type EventsAnswer } from '../support/event-rpc.ts'
import { context, db, fake, serveFakeArchive } from './fake-archive.ts'

let lines: string[]

serveFakeArchive()
beforeEach(() => {
  lines = captureLog()
  addTransfers(1, 30)
})
afterEach(() => void vi.restoreAllMocks())

/** Adds a transfer to each ledger from `first` through `last`. */
function addTransfers(first: number, last: number): void {
  for (let ledger = first; ledger <= last; ledger += 1) fake.add(ledger, 'transfer', [accountAt(0), accountAt(1)])
}

/** More than the 60 ledgers after which a ledger is read again. */
const LATER = 75

/** Ingests, before and after the network has closed the ledgers after which a second reading is due. */
async function ingestLater(): Promise<void> {
  await ingest(context)
  fake.latestLedger += LATER
  await ingest(context)
}

async function storedIds(): Promise<string[]> {
  const { toid, eventIndex } = archiveEvents
  const rows = await db.select({ toid, eventIndex }).from(archiveEvents).orderBy(asc(toid), asc(eventIndex))
  return rows.map((row) => idOf(row.toid, row.eventIndex))
}

const servedIds = () => fake.events.map(({ id }) => id)

async function archive() {
  const opened = await openArchive(db, CONTRACTS.token)
  if (!opened) throw new Error('nothing is archived')
  return opened
}

async function isFinal(fromLedger: number, toLedger: number): Promise<boolean> {
  const query = { fromLedger, toLedger, after: undefined, limit: 1_000 }
  return (await readTokenEvents(db, await archive(), query)).isFinal
}

/** A page without the events of these ledgers, whose cursor claims that it has all. */
const without =
  (...ledgers: number[]) =>
  (answer: EventsAnswer): EventsAnswer => ({
    ...answer,
    events: answer.events.filter(({ ledger }) => !ledgers.includes(ledger)),
  })

const logged = (event: string): Record<string, unknown>[] =>
  lines.map((line) => JSON.parse(line)).filter((entry) => entry.event === event)

describe('the second reading', () => {
  test('adds an event that a page omitted, and logs it', async () => {
    fake.distort = without(7, 9)
    await ingest(context)
    expect(await storedIds()).toHaveLength(28)
    fake.distort = undefined
    await ingestLater()
    expect(await storedIds()).toEqual(servedIds())
    const query = { fromLedger: 7, toLedger: 9, after: undefined, limit: 9 }
    const { events } = await readAccountEvents(db, await archive(), accountAt(1), query)
    expect(events.map(({ ledger_seq }) => ledger_seq)).toEqual([7, 8, 9])
    const { token: contract } = CONTRACTS
    expect(logged('archive corrected')).toMatchObject([
      { level: 'error', contract, fromLedger: 7, throughLedger: 9, events: 2 },
    ])
  })

  test('makes ledgers final only once a reading had all stored events', async () => {
    fake.distort = without(7)
    await ingest(context)
    expect(await isFinal(1, 30)).toBe(false)
    fake.distort = undefined
    await ingestLater()
    expect(await isFinal(1, 30)).toBe(false)
    await ingestLater()
    expect(await isFinal(1, 30)).toBe(true)
    expect(await isFinal(1, fake.latestLedger)).toBe(false)
    expect(logged('archive corrected')).toHaveLength(1)
  })

  test('keeps an event that it lacks, logs it, and leaves its ledgers to a third reading', async () => {
    await ingest(context)
    fake.distort = without(7)
    await ingestLater()
    expect(await storedIds()).toEqual(servedIds())
    expect(await isFinal(1, 30)).toBe(false)
    const { token: contract } = CONTRACTS
    const contradicted = { level: 'error', contract, fromLedger: 7, throughLedger: 7, events: 1 }
    expect(logged('archive contradicted')).toMatchObject([contradicted])
    await ingestLater()
    expect(logged('archive contradicted')).toMatchObject([contradicted, contradicted])
    const last = 30 + LATER
    expect([await isFinal(1, 6), await isFinal(7, 7), await isFinal(8, last)]).toEqual([true, false, true])
    fake.distort = undefined
    await ingestLater()
    expect(await isFinal(1, last)).toBe(true)
    expect(await storedIds()).toEqual(servedIds())
  })

  test('keeps what is stored if it has other content for an event', async () => {
    await ingest(context)
    fake.distort = (answer) => ({
      ...answer,
      events: answer.events.map((event) => (event.ledger === 7 ? { ...event, value: 'AAAAAQ==' } : event)),
    })
    const before = await db.select().from(archiveEvents)
    await ingestLater()
    expect(await db.select().from(archiveEvents)).toEqual(before)
    expect(logged('archive contradicted')).toMatchObject([{ fromLedger: 7, throughLedger: 7, events: 1 }])
    expect(await isFinal(1, 30)).toBe(false)
  })

  test('begins 60 ledgers after the first one, with a request per stream', async () => {
    await ingest(context)
    fake.latestLedger += 60
    fake.requests = 0
    await ingest(context)
    expect(fake.requests).toBe(1)
    expect(await isFinal(1, 30)).toBe(false)
    fake.latestLedger += 15
    await ingest(context)
    expect(fake.requests).toBe(3)
    expect(await isFinal(1, 30)).toBe(true)
    fake.latestLedger += 15
    await ingest(context)
    expect(fake.requests).toBe(4)
  })

  test('does not count a ledger as old that was itself read late', async () => {
    fake.latestLedger = 5_000
    await ingest(context)
    fake.latestLedger += 59
    await ingest(context)
    expect(await isFinal(1, 30)).toBe(false)
  })

  test('skips ledgers that the RPC has dropped, which never become final', async () => {
    await ingest(context)
    Object.assign(fake, { oldestLedger: 10 })
    await ingestLater()
    await ingestLater()
    expect(await isFinal(9, 30)).toBe(false)
    expect(await isFinal(10, 30)).toBe(true)
    const coverage = await readCoverage(db, await archive())
    expect(coverage).toMatchObject({ gaps: 0, finalThrough: 30 + LATER })
  })

  test('plans again if a node named a ledger that is far in the future', async () => {
    await ingest(context)
    await db.update(archiveStreams).set({ rereadAfter: 5_000_000 })
    await ingestLater()
    await ingestLater()
    expect(await isFinal(1, 30)).toBe(true)
  })

  test('does nothing if the RPC keeps fewer than 60 ledgers', async () => {
    await ingest(context)
    for (let round = 0; round < 20; round += 1) {
      addTransfers(fake.latestLedger + 1, fake.latestLedger + 20)
      fake.oldestLedger = Math.max(1, fake.latestLedger - 40)
      await ingest(context)
    }
    expect(fake.requests).toBe(21)
    expect(await storedIds()).toEqual(servedIds())
    const { ingestedThrough, gaps, finalThrough } = await readCoverage(db, await archive())
    expect([ingestedThrough, gaps, finalThrough]).toEqual([fake.latestLedger, 0, 0])
  })

  test('does not count a gap as read twice that is filled while it goes on', async () => {
    await ingest(context)
    Object.assign(fake, { oldestLedger: 101, latestLedger: 200 })
    await ingest(context)
    fake.oldestLedger = 1
    fake.latestLedger += LATER
    await ingest(context)
    const [whole] = (await archive()).ranges
    expect(whole).toMatchObject({ fromLedger: 1, throughLedger: 275 })
    expect(await isFinal(31, 100)).toBe(false)
    await ingestLater()
    expect(await isFinal(1, 275)).toBe(true)
  })

  test('reads the registries again, too', async () => {
    fake.add(31, 'auditor_set', [CONTRACTS.auditor])
    fake.add(32, 'register_key', [], CONTRACTS.auditor)
    fake.add(33, 'rotate_key', [], CONTRACTS.auditor)
    fake.distort = without(33)
    await ingest(context)
    await ingest(context)
    fake.distort = undefined
    await ingestLater()
    expect(await storedIds()).toEqual(servedIds())
    expect(logged('archive corrected')).toMatchObject([{ contract: CONTRACTS.auditor, events: 1 }])
  })

  test('corrects once when three rounds run at once, and survives requests that fail', async () => {
    fake.scan = 20
    addTransfers(31, 400)
    let turn = 0
    const omit = without(7, 8, 150, 151, 390)
    fake.distort = (answer) => {
      turn += 1
      return turn % 3 === 0 ? undefined : omit(answer)
    }
    /** Three rounds at once, again until they have done something: any of their requests may fail. */
    const raceUntil = async (isDone: () => Promise<boolean>) => {
      for (let round = 0; round < 60 && !(await isDone()); round += 1) await raceRounds()
      expect(await isDone()).toBe(true)
    }
    const raceRounds = async () => {
      // Another request of each round fails.
      turn += 1
      const freed = setInterval(() => void db.update(archiveStreams).set({ claimedUntil: null }).then(), 5)
      await Promise.allSettled([ingest(context), ingest(context), ingest(context)])
      clearInterval(freed)
    }
    const isPlanned = async () => {
      const token = (await db.select().from(archiveStreams)).find(({ role }) => role === 'token')
      return token?.rereadTo === 400
    }
    await raceUntil(isPlanned)
    expect(await storedIds()).toHaveLength(395)
    fake.distort = (answer) => {
      turn += 1
      return turn % 4 === 0 ? undefined : answer
    }
    fake.latestLedger += LATER
    await raceUntil(async () => (await storedIds()).length === 400)
    expect(await storedIds()).toEqual(servedIds())
    // The next reading is planned at some ledger, and is due when the network has closed more of them.
    await raceUntil(async () => {
      fake.latestLedger += 5
      return await isFinal(1, 400)
    })
    const corrected = logged('archive corrected').map(({ events }) => Number(events))
    expect(corrected.reduce((sum, events) => sum + events)).toBe(5)
    expect(logged('archive contradicted')).toEqual([])
  })
})
