import { Address } from '@stellar/stellar-sdk'
import { and, eq } from 'drizzle-orm'
import {
  archiveEventAccounts,
  archiveEvents,
  archivePayloads,
  archiveRanges,
  archiveStreams,
} from '#drizzle/schema/archive.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { partsOf } from '#lib/db/parts.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { perProcess } from '#lib/observability/per-process.ts'
import { readInstance, settingOf } from '#lib/stellar/asset.ts'
import { ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { claim, extendClaim, releaseClaim } from './claim.ts'
import { accountRowsOf, registryNamedBy, rowOf, wantsPayload } from './event.ts'
import { requireOwnNetwork } from './identity.ts'
import { fetchPayloads } from './payload.ts'
import { firstGap } from './ranges.ts'
import { type EventPage, fetchEvents, type LedgerHead, readLedgerHead, readWindow, type Window } from './source.ts'
import { addRegistries, findRanges, findStreams, openStreams, type Stream } from './streams.ts'

/** The parts of the service that ingest the events of its token. */
export interface ArchiveContext {
  network: Network
  /** C-address of the confidential token */
  token: string
  database(): Promise<Database>
}

/** Ends a round even if events are missing: after this many pages of a stream, or this many milliseconds. */
interface RoundOptions {
  maxPages?: number
  maxMs?: number
  /** only the events of the token: nothing of its registries, and no payloads */
  isBrief?: boolean
}

/**
 * Stores the events that are missing: those of the token since the RPC's oldest ledger, and those of the registries that
 * it names. Several processes may ingest at once, and each may be killed at any point. Resolves to the number of events
 * stored.
 * @throws LedgerError `unavailable`, once the streams that can be read have been
 */
export async function ingest(
  context: ArchiveContext,
  { maxPages = Number.POSITIVE_INFINITY, maxMs = Number.POSITIVE_INFINITY, isBrief = false }: RoundOptions = {},
): Promise<number> {
  const { network } = context
  const deadline = performance.now() + maxMs
  const db = await context.database()
  const window = await readWindow(network)
  await requireOwnNetwork(db, context, window)
  await openStreams(db, context, window)
  if (!isBrief) await addRegistries(db, context.token, await readRegistries(context))
  const heads = new Map<number, Promise<LedgerHead>>()
  // The streams end at the same ledger.
  const readHead = (sequence: number) => {
    const head = heads.get(sequence) ?? readLedgerHead(network, sequence)
    heads.set(sequence, head)
    // One stream's failure must not affect the others.
    head.catch(() => heads.delete(sequence))
    return head
  }
  const failures: unknown[] = []
  let stored = 0
  const streams = (await findStreams(db, context.token)).filter(({ role }) => role === 'token' || !isBrief)
  for (const stream of streams) {
    let claimedUntil = await claim(db, stream)
    if (!claimedUntil) continue
    const renew = async () => {
      claimedUntil = await extendClaim(db, stream)
    }
    try {
      stored += await ingestStream(db, network, stream, { window, maxPages, deadline, readHead, renew })
    } catch (error) {
      failures.push(error)
    } finally {
      await releaseClaim(db, stream, claimedUntil)
    }
  }
  const [token] = streams
  if (token && !isBrief) await fetchPayloads(db, network, token)
  if (failures.length > 0) throw failures[0]
  return stored
}

/** The registries that the token names now. If that cannot be read, they are known from its events alone. */
async function readRegistries({ network, token }: ArchiveContext): Promise<string[]> {
  const instance = await readInstance(network.server, token)
  return ['Verifier', 'Auditor'].flatMap((name) => {
    const setting = settingOf(instance, name)
    return setting?.type === 'scvAddress' ? [Address.fromScVal(setting).toString()] : []
  })
}

/** The RPC drops ledgers during a long catch-up, so its window is read again after this many pages. */
const WINDOW_PAGES = 20

/** How far a round ingests a stream. */
interface RoundLimits {
  window: Window
  maxPages: number
  /** from performance.now() */
  deadline: number
  readHead: (sequence: number) => Promise<LedgerHead>
  /** extends the claim */
  renew: () => Promise<void>
}

async function ingestStream(
  db: Database,
  network: Network,
  stream: Stream,
  { window: first, maxPages, deadline, readHead, renew }: RoundLimits,
): Promise<number> {
  let window = first
  let stored = 0
  for (let pages = 0; pages < maxPages && (pages === 0 || performance.now() < deadline); pages += 1) {
    if (pages > 0 && pages % WINDOW_PAGES === 0) window = await readWindow(network)
    const ranges = await findRanges(db, [stream.id])
    const gap = firstGap(ranges, window.oldestLedger)
    if (gap.from > window.latestLedger) break
    const page = await fetchEvents(network, stream.contract, gap.from)
    const through = Math.min(page.through, (gap.before ?? Number.POSITIVE_INFINITY) - 1)
    if (through < gap.from) break
    const range = { events: page.events.filter(({ ledger }) => ledger <= through), through }
    const last = await readHead(through)
    await requireSameNetwork(range, readHead)
    const continues = ranges.some(({ throughLedger }) => throughLedger === gap.from - 1)
    const beginning = continues ? undefined : await readHead(gap.from)
    // Another process was faster: read the rows that it stored.
    if (!(await store(db, stream, { ...gap, first: beginning, last, page: range }))) continue
    stored += range.events.length
    await renew()
  }
  return stored
}

/**
 * Behind one address, one node may serve another network with the same numbers. Events name no ledger hash, but they name
 * the time at which their ledger closed.
 * @throws LedgerError `unavailable`
 */
async function requireSameNetwork(
  { events }: EventPage,
  readHead: (sequence: number) => Promise<LedgerHead>,
): Promise<void> {
  const last = events.at(-1)
  if (!last) return
  const { closedAt } = await readHead(last.ledger)
  if (closedAt !== Date.parse(last.ledgerClosedAt) / 1000) throw ledgerUnreachable(new Error('two networks respond'))
}

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
function store(db: Database, stream: Stream, { from, before, first, last, page }: PageToStore): Promise<boolean> {
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
    return true
  })
}

async function insertEvents(tx: Database, stream: Stream, { events }: EventPage): Promise<void> {
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

/** How long (ms) a round in the background may take: others wait for it, and a serverless function has a minute. */
export const ROUND_MS = 20_000

/** The minimum interval (ms) between two rounds started by settlements. */
const SOON_MS = 30_000

const lastRound = perProcess('archive round', (): { at?: number } => ({}))

/**
 * Ingests in the background after a settlement, at most once in 30 s: on serverless hosts the chores may run only once a
 * day. Failures are logged, and the next round resumes from the stored rows.
 */
export function ingestSoon(context: ArchiveContext): void {
  const now = performance.now()
  if (lastRound.at !== undefined && now - lastRound.at < SOON_MS) return
  lastRound.at = now
  ingest(context, { maxMs: ROUND_MS }).catch((error: unknown) =>
    log('error', 'archive', { failure: describeFailure(error) }),
  )
}
