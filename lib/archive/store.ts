import { and, eq, gte } from 'drizzle-orm'
import {
  archiveEventAccounts,
  archiveEvents,
  archivePayloads,
  archiveRanges,
  archiveStreams,
} from '#drizzle/schema/archive.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { accountRowsOf, registryNamedBy, rowOf, wantsPayload } from './event.ts'
import { firstGap } from './ranges.ts'
import type { EventPage, LedgerHead } from './source.ts'
import { addRegistries, findRanges, type Stream } from './streams.ts'

/** A page, and the gap that it fills from its start: `before` is the first ledger of the next range. */
interface PageToStore {
  from: number
  before: number | undefined
  /** undefined if a range ends right before the page */
  first: LedgerHead | undefined
  last: LedgerHead
  page: EventPage
}

/**
 * Stores a page in one SQL transaction, which extends the range that it continues, or creates a range. If the range now
 * reaches the next one, merges the two. Returns false and stores nothing if the range doesn't end where the fetch began.
 */
export function store(
  db: Database,
  stream: Stream,
  { from, before, first, last, page }: PageToStore,
): Promise<boolean> {
  const own = eq(archiveRanges.stream, stream.id)
  const end = { throughLedger: last.sequence, throughHash: last.hash, throughClosedAt: last.closedAt }
  return transact(db, async (tx) => {
    // Only one process at a time may begin a range: two that begin at different ledgers would overlap.
    await tx.select().from(archiveStreams).where(eq(archiveStreams.id, stream.id)).for('update')
    const ranges = await findRanges(tx, [stream.id])
    const now = firstGap(ranges, from)
    if (now.from !== from || now.before !== before) return false
    const [moved] = await tx
      .update(archiveRanges)
      .set(end)
      .where(and(own, eq(archiveRanges.throughLedger, from - 1)))
      .returning()
    if (!moved) {
      if (!first) return false
      await tx.insert(archiveRanges).values({ stream: stream.id, fromLedger: from, fromHash: first.hash, ...end })
    }
    const [next] = ranges.filter(({ fromLedger }) => fromLedger === last.sequence + 1)
    if (next) {
      const { throughLedger, throughHash, throughClosedAt } = next
      await tx.delete(archiveRanges).where(and(own, eq(archiveRanges.fromLedger, next.fromLedger)))
      await tx
        .update(archiveRanges)
        .set({ throughLedger, throughHash, throughClosedAt })
        .where(and(own, eq(archiveRanges.throughLedger, last.sequence)))
    }
    await insertEvents(tx, stream, page)
    // These ledgers were read too late for a second reading that has begun, or is about to.
    await tx
      .update(archiveStreams)
      .set({ rereadTo: 0, rereadThrough: 0 })
      .where(and(eq(archiveStreams.id, stream.id), gte(archiveStreams.rereadTo, from)))
    return true
  })
}

/** Inserts events that are not stored yet, and what belongs to them. */
export async function insertEvents(tx: Database, stream: Stream, { events }: Pick<EventPage, 'events'>): Promise<void> {
  for (const part of partsOf(events)) {
    const rows = part.map((event) => rowOf(stream.id, event))
    await tx.insert(archiveEvents).values(rows)
    const accounts = part.flatMap((event) => accountRowsOf(stream.id, event))
    if (stream.role === 'token' && accounts.length > 0) await tx.insert(archiveEventAccounts).values(accounts)
    const wanted = rows.filter(wantsPayload).map(({ toid, eventIndex }) => ({ stream: stream.id, toid, eventIndex }))
    if (stream.role === 'token' && wanted.length > 0) await tx.insert(archivePayloads).values(wanted)
  }
  const named = stream.role === 'token' ? events.flatMap((event) => registryNamedBy(event) ?? []) : []
  await addRegistries(tx, stream.token, named)
}
