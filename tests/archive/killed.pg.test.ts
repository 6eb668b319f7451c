import { asc } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { archiveEvents, archiveFinalRanges, archiveStreams } from '#drizzle/schema/archive.ts'
import { idOf } from '#lib/archive/event.ts'
import { openArchive } from '#lib/archive/history.ts'
import { ingest } from '#lib/archive/ingest.ts'
import { openStore } from '#lib/db/connection.ts'
import { openNetwork } from '#lib/stellar/network.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import { accountAt, CONTRACTS, type EventRpc, type EventsAnswer, startEventRpc } from '../support/event-rpc.ts'
import { makeGate } from '../support/gate.ts'
import { seededRandom } from '../transfers/random.ts'

const PROCESSES = 3
const KILLS = 10
const EVENTS = 2_000
/**
 * The longest delay (ms) between the request of a page and the kill: before the response, or while the page is stored.
 */
const MAX_DELAY_MS = 25

let database: TestDatabase
let rpc: EventRpc
beforeAll(async () => {
  database = await cloneDatabase()
  rpc = await startEventRpc()
  rpc.scan = 5
})
afterAll(async () => {
  await rpc?.close()
  await database?.drop()
})

interface Ingesting {
  /** Cuts its connections, so that it can do nothing more. */
  kill(): Promise<void>
}

/** Ingests until it is killed. */
async function startIngesting(): Promise<Ingesting> {
  const gates = await Promise.all([makeGate(database.url), makeGate(rpc.url)])
  const [toDatabase, toRpc] = gates
  await Promise.all(gates.map((gate) => gate.open()))
  const store = openStore({ url: toDatabase.url })
  const passphrase = 'Standalone Network ; February 2017'
  const network = openNetwork({ name: 'local', passphrase, rpcUrl: toRpc.url, pollMs: 100 })
  let isAlive = true
  const running = (async () => {
    while (isAlive) {
      await ingest({ network, token: CONTRACTS.token, database: store.database }).catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await store.close()
  })()
  return {
    kill: async () => {
      isAlive = false
      await Promise.all(gates.map((gate) => gate.shut()))
      void running.catch(() => undefined)
    },
  }
}

test('keeps every event once and in order, and adds omitted ones, while three processes are killed again and again', async () => {
  const random = seededRandom(1)
  const db = await database.store.database()
  for (let index = 0; index < EVENTS; index += 1) {
    rpc.add(2 + Math.floor(index / 3), 'transfer', [accountAt(index % 5), accountAt((index + 1) % 7)])
  }
  const processes: Ingesting[] = []
  let kills = 0
  let pages = 1 + random(20)
  const killing = new Set<Promise<void>>()
  /** Kills a process a moment later, and starts another. */
  const kill = async (index: number, delayMs: number) => {
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    await processes[index]?.kill()
    processes[index] = await startIngesting()
  }
  let omitsEvents = true
  const { latestLedger } = rpc
  const omit = (answer: EventsAnswer) =>
    omitsEvents ? { ...answer, events: answer.events.filter(({ ledger }) => ledger % 50 !== 0) } : answer
  rpc.distort = (page) => {
    const answer = omit(page)
    pages -= 1
    if (pages > 0 || kills >= (omitsEvents ? KILLS : 2 * KILLS) || killing.size > 0) return answer
    kills += 1
    pages = 1 + random(20)
    const killed = kill(random(PROCESSES), random(MAX_DELAY_MS)).finally(() => killing.delete(killed))
    killing.add(killed)
    return answer
  }
  // A killed process leaves its claim: without the claims, the conditional writes alone keep the rows correct.
  const freed = setInterval(
    () =>
      void db
        .update(archiveStreams)
        .set({ claimedUntil: null })
        .catch(() => undefined),
    10,
  )
  while (processes.length < PROCESSES) processes.push(await startIngesting())
  try {
    await expect.poll(async () => (await openArchive(db, CONTRACTS.token))?.ingestedThrough).toBe(rpc.latestLedger)
    omitsEvents = false
    for (let reading = 0; reading < 2; reading += 1) {
      const plan = async () => (await db.select().from(archiveStreams)).map(({ rereadAfter }) => rereadAfter)
      await expect.poll(async () => (await plan()).every((after) => after > rpc.latestLedger)).toBe(true)
      rpc.latestLedger += 100
      await expect.poll(async () => (await plan()).every((after) => after > rpc.latestLedger)).toBe(true)
    }
  } finally {
    clearInterval(freed)
    rpc.distort = undefined
    await Promise.all(killing)
    for (const process of processes) await process.kill()
  }
  expect(kills).toBeGreaterThan(KILLS)
  const { toid, eventIndex } = archiveEvents
  const stored = await db.select({ toid, eventIndex }).from(archiveEvents).orderBy(asc(toid), asc(eventIndex))
  expect(stored.map((event) => idOf(event.toid, event.eventIndex))).toEqual(rpc.events.map(({ id }) => id))
  expect((await openArchive(db, CONTRACTS.token))?.ranges).toMatchObject([
    { fromLedger: 1, throughLedger: rpc.latestLedger },
  ])
  const [final] = await db.select().from(archiveFinalRanges)
  expect(final).toMatchObject({ fromLedger: 1 })
  expect(final?.throughLedger).toBeGreaterThanOrEqual(latestLedger)
})
