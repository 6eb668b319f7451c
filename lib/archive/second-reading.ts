import { and, asc, eq, gte, inArray, lte } from 'drizzle-orm'
import { archiveEvents, archiveFinalRanges, archiveStreams } from '#drizzle/schema/archive.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { log } from '#lib/observability/log.ts'
import type { Network } from '#lib/stellar/network.ts'
import { LAG } from '#lib/stellar/view.ts'
import { type EventRow, idOf, rowOf } from './event.ts'
import { covers, firstGap, joinRanges, splitAt } from './ranges.ts'
import { type EventPage, fetchEvents, ledgerOf, type RoundLimits, readWindow, requireSameNetwork } from './source.ts'
import { insertEvents } from './store.ts'
import { findFinalRanges, findRanges, type Stream } from './streams.ts'

/** A ledger is read again at least 60 ledgers after it was stored, even if a lagging node said how far the network was. */
const DELAY_LEDGERS = 60 + LAG

/** How many pages of a stream are read again in a round: others wait for its new events. */
const MAX_PAGES = 20

/**
 * Reads ledgers that are not final again, if they were stored at least 60 ledgers ago: a lagging or dishonest node may have omitted
 * an event. Adds such events. Ledgers become final if the reading had exactly the stored events; the others are left to the next
 * reading. Resolves to the number of events added.
 * @throws LedgerError `unavailable`
 */
export async function readAgain(
  db: Database,
  network: Network,
  stream: Stream,
  { window, maxPages, deadline, readHead, renew }: RoundLimits,
): Promise<number> {
  let added = 0
  const most = Math.min(maxPages, MAX_PAGES)
  for (let pages = 0; pages < most && (pages === 0 || performance.now() < deadline); pages += 1) {
    const reading = await findReading(db, stream)
    if (!reading || reading.rereadThrough >= reading.rereadTo) {
      await planReading(db, network, stream)
      break
    }
    // A node named a ledger that is far in the future when this was planned.
    if (reading.rereadAfter > window.latestLedger + DELAY_LEDGERS + 2 * LAG) {
      await moveReading(db, stream, reading, reading.rereadTo)
      continue
    }
    if (window.latestLedger < reading.rereadAfter) break
    const floor = Math.max(window.oldestLedger, reading.rereadThrough + 1)
    const { from } = firstGap(await findFinalRanges(db, [stream.id]), floor)
    if (from > reading.rereadTo) {
      await moveReading(db, stream, reading, reading.rereadTo)
      continue
    }
    // An RPC with a longer history than before: its ledgers are read for the first time first.
    if (!covers(await findRanges(db, [stream.id]), from, reading.rereadTo)) break
    const page = await fetchEvents(network, stream.contract, from)
    const through = Math.min(page.through, reading.rereadTo)
    if (through < from) break
    const range = { from, through, events: page.events.filter(({ ledger }) => ledger <= through) }
    await requireSameNetwork(range, readHead)
    added += await confirmPage(db, stream, reading, range)
    await renew()
  }
  return added
}

type Reading = Pick<Stream, 'rereadTo' | 'rereadAfter' | 'rereadThrough'>

async function findReading(db: Database, { id }: Stream): Promise<Reading | undefined> {
  const { rereadTo, rereadAfter, rereadThrough } = archiveStreams
  const [reading] = await db
    .select({ rereadTo, rereadAfter, rereadThrough })
    .from(archiveStreams)
    .where(eq(archiveStreams.id, id))
  return reading
}

/** Plans to read all stored ledgers again, once the network is far enough. Not while older ledgers are still missing. */
async function planReading(db: Database, network: Network, { id }: Stream): Promise<void> {
  // The ranges first: none of their ledgers was stored after the network's latest ledger was read.
  const ranges = await findRanges(db, [id])
  const window = await readWindow(network)
  const last = ranges.at(-1)
  if (!last || firstGap(ranges, window.oldestLedger).before !== undefined) return
  const rereadAfter = Math.max(window.latestLedger, last.throughLedger) + DELAY_LEDGERS
  await db
    .update(archiveStreams)
    .set({ rereadTo: last.throughLedger, rereadAfter, rereadThrough: 0 })
    .where(and(eq(archiveStreams.id, id), gte(archiveStreams.rereadThrough, archiveStreams.rereadTo)))
}

/** False if another process has moved it. */
async function moveReading(tx: Database, { id }: Stream, reading: Reading, through: number): Promise<boolean> {
  const moved = await tx
    .update(archiveStreams)
    .set({ rereadThrough: through })
    .where(
      and(
        eq(archiveStreams.id, id),
        eq(archiveStreams.rereadTo, reading.rereadTo),
        eq(archiveStreams.rereadAfter, reading.rereadAfter),
        eq(archiveStreams.rereadThrough, reading.rereadThrough),
      ),
    )
    .returning({ id: archiveStreams.id })
  return moved.length > 0
}

interface PageReadAgain extends EventPage {
  from: number
}

/**
 * Compares a page with the stored events, in the SQL transaction that moves the reading. Adds the events that are not stored.
 * Nothing is deleted: one node that lacks an event must not erase it.
 */
function confirmPage(db: Database, stream: Stream, reading: Reading, page: PageReadAgain): Promise<number> {
  return transact(db, async (tx) => {
    if (!(await moveReading(tx, stream, reading, page.through))) return 0
    const stored = await findEvents(tx, stream, page)
    const known = new Set(stored.map(({ toid, eventIndex }) => idOf(toid, eventIndex)))
    const missing = page.events.filter(({ id }) => !known.has(id))
    const served = new Map(page.events.map((event) => [event.id, rowOf(stream.id, event)]))
    const contradicted = stored.filter((row) => !isSame(row, served.get(idOf(row.toid, row.eventIndex))))
    const [late, disputed] = [missing.map(({ ledger }) => ledger), contradicted.map(({ toid }) => ledgerOf(toid))]
    await insertEvents(tx, stream, { events: missing })
    await addFinal(tx, stream, page, new Set([...late, ...disputed]))
    // Before the commit: a process that dies here logs it twice rather than never.
    report('archive corrected', stream, late)
    report('archive contradicted', stream, disputed)
    return missing.length
  })
}

/** @param ledgers those of the events, ascending */
function report(event: string, { contract }: Stream, ledgers: readonly number[]): void {
  const [fromLedger] = ledgers
  if (fromLedger === undefined) return
  log('error', event, { contract, fromLedger, throughLedger: ledgers.at(-1), events: ledgers.length })
}

function findEvents(tx: Database, { id }: Stream, { from, through }: PageReadAgain): Promise<EventRow[]> {
  const { stream, toid, eventIndex } = archiveEvents
  const isWithin = and(gte(toid, BigInt(from) << 32n), lte(toid, (BigInt(through) << 32n) | 0xffff_ffffn))
  return tx
    .select()
    .from(archiveEvents)
    .where(and(eq(stream, id), isWithin))
    .orderBy(asc(toid), asc(eventIndex))
}

function isSame(row: EventRow, other: EventRow | undefined): boolean {
  if (!other || other.closedAt !== row.closedAt) return false
  return (['txHash', 'topics', 'data'] as const).every((name) => Buffer.from(row[name]).equals(other[name]))
}

/** Marks the ledgers of a page as final, and those that differ as not final, and joins adjacent ranges. */
async function addFinal(
  tx: Database,
  { id: stream }: Stream,
  { from, through }: PageReadAgain,
  differing: ReadonlySet<number>,
): Promise<void> {
  const near = (await findFinalRanges(tx, [stream])).filter(
    ({ fromLedger, throughLedger }) => throughLedger >= from - 1 && fromLedger <= through + 1,
  )
  const starts = near.map(({ fromLedger }) => fromLedger)
  await tx
    .delete(archiveFinalRanges)
    .where(and(eq(archiveFinalRanges.stream, stream), inArray(archiveFinalRanges.fromLedger, starts)))
  const joined = joinRanges([...near, { fromLedger: from, throughLedger: through }])
  for (const part of partsOf(joined.flatMap((range) => splitAt(range, differing)))) {
    await tx.insert(archiveFinalRanges).values(part.map((range) => ({ stream, ...range })))
  }
}
