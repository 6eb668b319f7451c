import { and, asc, eq, gte, inArray, lte, type SQL, sql } from 'drizzle-orm'
import { archiveEventAccounts, archiveEvents, archivePayloads } from '#drizzle/schema/archive.ts'
import type { Database } from '#lib/db/connection.ts'
import { type EventRow, idOf, presentEvent, wantsPayload } from './event.ts'
import { covers } from './ranges.ts'
import { positionOf } from './source.ts'
import { areFinal, findFinalEnds, findRanges, findStreams, type StoredRange, type Stream } from './streams.ts'

/** A token's events, as ingested so far. */
export interface Archive {
  /** hash of the first ingested ledger: 64 hex digits */
  generation: string
  token: Stream
  registries: Stream[]
  /** of the token's events, ascending */
  ranges: StoredRange[]
  /** the first and the last ledger that the token's ranges cover */
  firstLedger: number
  ingestedThrough: number
}

/** The archive of `token`; undefined before its first page is stored. */
export async function openArchive(db: Database, token: string): Promise<Archive | undefined> {
  const streams = await findStreams(db, token)
  const [own] = streams.filter(({ role }) => role === 'token')
  const ranges = own ? await findRanges(db, [own.id]) : []
  const [first] = ranges
  const last = ranges.at(-1)
  if (!own || !first || !last) return undefined
  const registries = streams.filter(({ role }) => role === 'registry')
  const ends = { firstLedger: first.fromLedger, ingestedThrough: last.throughLedger }
  return { generation: own.generation ?? '', token: own, registries, ranges, ...ends }
}

/**
 * How far every stream of an archive is ingested, its registries included, the latest ledger that was read twice in all of them (0 at
 * first), how many gaps they have, and the first and the last missing ledger.
 */
export async function readCoverage(db: Database, { token, registries }: Archive) {
  const streams = [token, ...registries].map(({ id }) => id)
  const ranges = Map.groupBy(await findRanges(db, streams), ({ stream }) => stream)
  const final = await findFinalEnds(db, streams)
  const missing = [...ranges.values()].flatMap((own) =>
    own
      .slice(1)
      .map(({ fromLedger }, index) => ({ from: (own[index]?.throughLedger ?? 0) + 1, through: fromLedger - 1 })),
  )
  return {
    ingestedThrough: Math.min(...streams.map((id) => ranges.get(id)?.at(-1)?.throughLedger ?? 0)),
    finalThrough: Math.min(...streams.map((id) => final.get(id) ?? 0)),
    gaps: missing.length,
    ...(missing.length > 0 && {
      missingFrom: Math.min(...missing.map(({ from }) => from)),
      missingThrough: Math.max(...missing.map(({ through }) => through)),
    }),
  }
}

/** The events to read: ledgers inclusive, `after` an event's id, at most `limit`. */
interface EventQuery {
  fromLedger: number
  toLedger: number
  after: string | undefined
  limit: number
  /** event names; undefined for all */
  types?: readonly string[] | undefined
}

/** A page of events in the order of the ledger. */
export interface ArchivedPage {
  events: ReturnType<typeof presentEvent>[]
  /** the id after which the next page begins; null at the end of the requested ledgers */
  cursor: string | null
  /** true if every requested ledger is in the archive, as the RPC returned it */
  complete: boolean
  /** true if the page can't change any more: its ledgers were read twice, and no payload is still wanted */
  isFinal: boolean
}

/** The largest event index that fits the column, far more than a transaction emits. */
export const MAX_INDEX = 2_147_483_647

export interface Positioned {
  toid: bigint
  eventIndex: number
}

/** The events of one account, at a cost that depends on the page only. */
export async function readAccountEvents(
  db: Database,
  archive: Archive,
  account: string,
  query: EventQuery,
): Promise<ArchivedPage> {
  const columns = { toid: archiveEventAccounts.toid, eventIndex: archiveEventAccounts.eventIndex }
  const positions = await db
    .select(columns)
    .from(archiveEventAccounts)
    .where(
      and(
        eq(archiveEventAccounts.stream, archive.token.id),
        eq(archiveEventAccounts.account, account),
        ...within(columns, query),
      ),
    )
    .orderBy(asc(archiveEventAccounts.toid), asc(archiveEventAccounts.eventIndex))
    .limit(query.limit + 1)
  const page = positions.slice(0, query.limit)
  const rows = await readRows(db, archive.token, page)
  return await present(db, archive, query, rows, positions.length > query.limit ? page.at(-1) : undefined)
}

/** The whole stream of the token's events. */
export async function readTokenEvents(db: Database, archive: Archive, query: EventQuery): Promise<ArchivedPage> {
  const rows = await readStream(db, archive.token, query)
  const page = rows.slice(0, query.limit)
  return await present(db, archive, query, page, rows.length > query.limit ? page.at(-1) : undefined)
}

/**
 * The events of the verifier and the auditor registries that the token has named, or of one of them. The archive lacks
 * the early events of a registry that was named late, so a reader of an earlier registry requests that one alone.
 */
export async function readRegistryEvents(
  db: Database,
  archive: Archive,
  query: EventQuery,
  registry?: string | undefined,
): Promise<ArchivedPage> {
  const registries = archive.registries.filter(({ contract }) => registry === undefined || contract === registry)
  const ids = registries.map(({ id }) => id)
  // Before the events: a page that is stored in between must not count as read.
  const ranges = await findRanges(db, ids)
  const streams = await Promise.all(registries.map((stream) => readStream(db, stream, query)))
  const rows = streams.flat().sort((one, other) => compare(one, other))
  const page = rows.slice(0, query.limit)
  const complete = ids.every((id) =>
    covers(
      ranges.filter(({ stream }) => stream === id),
      query.fromLedger,
      query.toLedger,
    ),
  )
  const isKnown = registry === undefined || registries.length > 0
  const rest = await present(db, archive, query, page, rows.length > query.limit ? page.at(-1) : undefined)
  return {
    ...rest,
    complete: isKnown && complete && rest.complete,
    isFinal: rest.isFinal && (await areFinal(db, ids, query)),
  }
}

/**
 * All events of one transaction (64 hex digits) in the token's stream. Not complete without any: its ledger may be above
 * the ingested ones.
 */
export async function readTransactionEvents(db: Database, archive: Archive, txHash: string): Promise<ArchivedPage> {
  const rows = await db
    .select()
    .from(archiveEvents)
    .where(and(eq(archiveEvents.txHash, Buffer.from(txHash, 'hex')), eq(archiveEvents.stream, archive.token.id)))
    .orderBy(asc(archiveEvents.toid), asc(archiveEvents.eventIndex))
  const ledgers = { fromLedger: archive.firstLedger, toLedger: archive.ingestedThrough }
  const page = await present(db, archive, { ...ledgers, after: undefined, limit: rows.length }, rows, undefined)
  // Ledgers are stored whole, so if one event of a transaction is here, all of them are.
  return { ...page, complete: rows.length > 0 }
}

function readStream(db: Database, stream: Stream, query: EventQuery): Promise<EventRow[]> {
  return db
    .select()
    .from(archiveEvents)
    .where(and(eq(archiveEvents.stream, stream.id), ...within(archiveEvents, query)))
    .orderBy(asc(archiveEvents.toid), asc(archiveEvents.eventIndex))
    .limit(query.limit + 1)
}

/** The condition for the ledgers and the cursor of a query, for an index that ends with (toid, event_index). */
function within(
  columns: { toid: typeof archiveEvents.toid | typeof archiveEventAccounts.toid; eventIndex: unknown },
  { fromLedger, toLedger, after }: EventQuery,
): SQL[] {
  const { toid, eventIndex } = columns
  const position = after === undefined ? undefined : positionOf(after)
  return [
    gte(toid, BigInt(fromLedger) << 32n),
    lte(toid, (BigInt(toLedger) << 32n) | 0xffff_ffffn),
    ...(position
      ? [sql`(${toid}, ${eventIndex}) > (${position.toid}, ${Math.min(position.eventIndex, MAX_INDEX)})`]
      : []),
  ]
}

/** The rows at these positions, in their order. */
export async function readRows(db: Database, stream: Stream, positions: readonly Positioned[]): Promise<EventRow[]> {
  if (positions.length === 0) return []
  const toids = [...new Set(positions.map(({ toid }) => toid))]
  const rows = await db
    .select()
    .from(archiveEvents)
    .where(and(eq(archiveEvents.stream, stream.id), inArray(archiveEvents.toid, toids)))
  const byPosition = new Map(rows.map((row) => [`${row.toid} ${row.eventIndex}`, row]))
  return positions.flatMap(({ toid, eventIndex }) => byPosition.get(`${toid} ${eventIndex}`) ?? [])
}

async function present(
  db: Database,
  { token, registries, ranges }: Archive,
  { fromLedger, toLedger, types }: EventQuery,
  rows: readonly EventRow[],
  last: Positioned | undefined,
): Promise<ArchivedPage> {
  const payloads = await readPayloads(db, rows.filter(wantsPayload))
  const contracts = new Map([token, ...registries].map(({ id, contract }) => [id, contract]))
  const shown = rows.filter(({ type }) => types === undefined || types.includes(type))
  return {
    events: shown.map((row) =>
      presentEvent(row, contracts.get(row.stream) ?? '', payloads.get(`${row.toid} ${row.eventIndex}`)),
    ),
    cursor: last ? idOf(last.toid, last.eventIndex) : null,
    complete: covers(ranges, fromLedger, toLedger),
    isFinal:
      [...payloads.values()].every(({ status }) => status !== 'wanted') &&
      (await areFinal(db, [token.id], { fromLedger, toLedger })),
  }
}

async function readPayloads(db: Database, rows: readonly EventRow[]) {
  const [first] = rows
  if (!first) return new Map<string, typeof archivePayloads.$inferSelect>()
  const found = await db
    .select()
    .from(archivePayloads)
    .where(
      and(
        eq(archivePayloads.stream, first.stream),
        inArray(
          archivePayloads.toid,
          rows.map(({ toid }) => toid),
        ),
      ),
    )
  return new Map(found.map((payload) => [`${payload.toid} ${payload.eventIndex}`, payload]))
}

const compare = (one: Positioned, other: Positioned) =>
  one.toid === other.toid ? one.eventIndex - other.eventIndex : one.toid < other.toid ? -1 : 1
