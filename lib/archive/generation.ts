import { and, asc, desc, eq, inArray, lt } from 'drizzle-orm'
import { archiveGenerations, archiveRanges, archiveStreams } from '#drizzle/schema/archive.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import type { Network } from '#lib/stellar/network.ts'
import { readLedgerHead, type Window } from './source.ts'

export type Generation = typeof archiveGenerations.$inferSelect
export type Stream = typeof archiveStreams.$inferSelect
export type StoredRange = typeof archiveRanges.$inferSelect

/** The newest generation of a token's events. */
export async function findGeneration(db: Database, token: string): Promise<Generation | undefined> {
  const [newest] = await db
    .select()
    .from(archiveGenerations)
    .where(eq(archiveGenerations.token, token))
    .orderBy(desc(archiveGenerations.ordinal))
    .limit(1)
  return newest
}

/** The streams of a generation, the token's first. */
export function findStreams(db: Database, generation: number): Promise<Stream[]> {
  return db
    .select()
    .from(archiveStreams)
    .where(eq(archiveStreams.generation, generation))
    .orderBy(asc(archiveStreams.id))
}

/** The ranges of streams, ascending. */
export function findRanges(db: Database, streams: readonly number[]): Promise<StoredRange[]> {
  return db
    .select()
    .from(archiveRanges)
    .where(inArray(archiveRanges.stream, [...streams]))
    .orderBy(asc(archiveRanges.stream), asc(archiveRanges.fromLedger))
}

/** A reset is accepted after this many further checks: behind one address, one node may serve another network. */
const CONFIRMATIONS = 3

/**
 * Returns the generation of the current network, and creates it if there is none. A network that was reset, or restored
 * to other ledgers, gets a new generation. A node that lags, or was restored from a backup of the same network, doesn't.
 * @throws LedgerError `unavailable`
 */
export async function currentGeneration(
  db: Database,
  { network, token }: { network: Network; token: string },
  window: Window,
): Promise<Generation> {
  const newest = await findGeneration(db, token)
  if (newest) {
    const ranges = await tokenRanges(db, newest)
    for (let checks = 0; ; checks += 1) {
      if (!(await wasReset(network, ranges, window))) return newest
      if (checks === CONFIRMATIONS) break
    }
    const earlier = await findReturning(db, network, newest, window)
    if (earlier) return earlier
  }
  return await beginGeneration(db, { network, token, ordinal: (newest?.ordinal ?? 0) + 1 }, window)
}

async function tokenRanges(db: Database, { id }: Generation): Promise<StoredRange[]> {
  const [stream] = await findStreams(db, id)
  return stream ? await findRanges(db, [stream.id]) : []
}

/** An earlier generation whose network is back: the reset was a mistake, or undone. It becomes the newest again. */
async function findReturning(
  db: Database,
  network: Network,
  newest: Generation,
  window: Window,
): Promise<Generation | undefined> {
  const earlier = await db
    .select()
    .from(archiveGenerations)
    .where(and(eq(archiveGenerations.token, newest.token), lt(archiveGenerations.ordinal, newest.ordinal)))
    .orderBy(desc(archiveGenerations.ordinal))
  for (const generation of earlier) {
    const ranges = await tokenRanges(db, generation)
    const isKnown = endsOf(ranges).some(({ sequence }) => isWithin(sequence, window))
    if (!isKnown || (await wasReset(network, ranges, window))) continue
    const [returned] = await db
      .update(archiveGenerations)
      .set({ ordinal: newest.ordinal + 1 })
      .where(eq(archiveGenerations.id, generation.id))
      .returning()
    return returned
  }
  return undefined
}

const endsOf = (ranges: readonly StoredRange[]) =>
  ranges.flatMap(({ fromLedger, fromHash, throughLedger, throughHash }) => [
    { sequence: fromLedger, hash: fromHash },
    { sequence: throughLedger, hash: throughHash },
  ])

const isWithin = (sequence: number, { oldestLedger, latestLedger }: Window) =>
  sequence >= oldestLedger && sequence <= latestLedger

/**
 * True if the network's ledgers differ from the ingested ones: a ledger at the end of a range has another hash, or the
 * latest ledger is lower and closed later.
 */
async function wasReset(network: Network, ranges: readonly StoredRange[], window: Window): Promise<boolean> {
  const end = endsOf(ranges).findLast(({ sequence }) => isWithin(sequence, window))
  if (end && (await readLedgerHead(network, end.sequence)).hash !== end.hash) return true
  const last = ranges.at(-1)
  if (!last || window.latestLedger >= last.throughLedger) return false
  return (await readLedgerHead(network, window.latestLedger)).closedAt > last.throughClosedAt
}

async function beginGeneration(
  db: Database,
  { network, token, ordinal }: { network: Network; token: string; ordinal: number },
  { oldestLedger }: Window,
): Promise<Generation> {
  const first = await readLedgerHead(network, oldestLedger)
  await transact(db, async (tx) => {
    const [created] = await tx
      .insert(archiveGenerations)
      .values({ token, ordinal, firstLedger: first.sequence, firstHash: first.hash })
      .onConflictDoNothing()
      .returning()
    if (created) await tx.insert(archiveStreams).values({ generation: created.id, contract: token, role: 'token' })
  })
  const [generation] = await db
    .select()
    .from(archiveGenerations)
    .where(and(eq(archiveGenerations.token, token), eq(archiveGenerations.ordinal, ordinal)))
  if (!generation) throw new Error('the new generation cannot be found')
  return generation
}

/** Adds the registries that a token names to the ingested contracts. Existing ones are unchanged. */
export async function addRegistries(db: Database, generation: number, contracts: readonly string[]): Promise<void> {
  if (contracts.length === 0) return
  await db
    .insert(archiveStreams)
    .values([...new Set(contracts)].map((contract) => ({ generation, contract, role: 'registry' as const })))
    .onConflictDoNothing()
}
