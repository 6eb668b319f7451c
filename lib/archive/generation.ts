import { and, asc, desc, eq, inArray } from 'drizzle-orm'
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

/** How often a reset is looked for before it is believed: behind one address, one node may serve another network. */
const CONFIRMATIONS = 3

/**
 * The generation that belongs to the network as it is now, begun if there is none. A network that was reset, or restored to
 * other ledgers, begins a new one. A node that lags, or was restored from a backup of the same network, does not.
 * @throws Refusal `unavailable`
 */
export async function currentGeneration(
  db: Database,
  { network, token }: { network: Network; token: string },
  window: Window,
): Promise<Generation> {
  const newest = await findGeneration(db, token)
  if (newest) {
    const [stream] = await findStreams(db, newest.id)
    const ranges = stream ? await findRanges(db, [stream.id]) : []
    for (let looked = 0; ; looked += 1) {
      if (!(await wasReset(network, ranges, window))) return newest
      if (looked === CONFIRMATIONS) break
    }
  }
  return await beginGeneration(db, { network, token, ordinal: (newest?.ordinal ?? 0) + 1 }, window)
}

/**
 * True if the network has other ledgers than those that were ingested: another hash for a ledger that an end of a range
 * remembers, or a latest ledger that is lower and closed later.
 */
async function wasReset(
  network: Network,
  ranges: readonly StoredRange[],
  { oldestLedger, latestLedger }: Window,
): Promise<boolean> {
  const ends = ranges
    .filter(({ fromLedger, throughLedger }) => throughLedger >= fromLedger)
    .flatMap(({ fromLedger, fromHash, throughLedger, throughHash }) => [
      { sequence: fromLedger, hash: fromHash },
      { sequence: throughLedger, hash: throughHash },
    ])
  const known = ends.findLast(({ sequence }) => sequence >= oldestLedger && sequence <= latestLedger)
  if (known) return (await readLedgerHead(network, known.sequence)).hash !== known.hash
  const last = ranges.at(-1)
  if (!last || latestLedger >= last.throughLedger) return false
  return (await readLedgerHead(network, latestLedger)).closedAt > last.throughClosedAt
}

async function beginGeneration(
  db: Database,
  { network, token, ordinal }: { network: Network; token: string; ordinal: number },
  { oldestLedger }: Window,
): Promise<Generation> {
  const first = await readLedgerHead(network, oldestLedger)
  await transact(db, async (tx) => {
    const [begun] = await tx
      .insert(archiveGenerations)
      .values({ token, ordinal, firstLedger: first.sequence, firstHash: first.hash })
      .onConflictDoNothing()
      .returning()
    if (begun) await tx.insert(archiveStreams).values({ generation: begun.id, contract: token, role: 'token' })
  })
  const [generation] = await db
    .select()
    .from(archiveGenerations)
    .where(and(eq(archiveGenerations.token, token), eq(archiveGenerations.ordinal, ordinal)))
  if (!generation) throw new Error('the generation that was just begun cannot be found')
  return generation
}

/** Adds the registries that a token has named to what is ingested. Those that are there stay as they are. */
export async function addRegistries(db: Database, generation: number, contracts: readonly string[]): Promise<void> {
  if (contracts.length === 0) return
  await db
    .insert(archiveStreams)
    .values([...new Set(contracts)].map((contract) => ({ generation, contract, role: 'registry' as const })))
    .onConflictDoNothing()
}
