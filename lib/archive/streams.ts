import { and, asc, eq, gte, inArray, lte, max } from 'drizzle-orm'
import { archiveFinalRanges, archiveRanges, archiveStreams } from '#drizzle/schema/archive.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Network } from '#lib/stellar/network.ts'
import { readLedgerHead, type Window } from './source.ts'

export type Stream = typeof archiveStreams.$inferSelect
export type StoredRange = typeof archiveRanges.$inferSelect

/** The streams of a token's archive, the token's own first. */
export function findStreams(db: Database, token: string): Promise<Stream[]> {
  return db.select().from(archiveStreams).where(eq(archiveStreams.token, token)).orderBy(asc(archiveStreams.id))
}

/** The ranges of streams, ascending. */
export function findRanges(db: Database, streams: readonly number[]): Promise<StoredRange[]> {
  return db
    .select()
    .from(archiveRanges)
    .where(inArray(archiveRanges.stream, [...streams]))
    .orderBy(asc(archiveRanges.stream), asc(archiveRanges.fromLedger))
}

/** The ledgers of streams that were read twice, ascending. */
export function findFinalRanges(db: Database, streams: readonly number[]) {
  return db
    .select()
    .from(archiveFinalRanges)
    .where(inArray(archiveFinalRanges.stream, [...streams]))
    .orderBy(asc(archiveFinalRanges.stream), asc(archiveFinalRanges.fromLedger))
}

/** The last ledger that was read twice, by stream. */
export async function findFinalEnds(db: Database, streams: readonly number[]): Promise<Map<number, number>> {
  const { stream, throughLedger } = archiveFinalRanges
  const rows = await db
    .select({ stream, end: max(throughLedger) })
    .from(archiveFinalRanges)
    .where(inArray(stream, [...streams]))
    .groupBy(stream)
  return new Map(rows.map(({ stream, end }) => [stream, end ?? 0]))
}

/** Whether every stream was read twice from one ledger through another. */
export async function areFinal(
  db: Database,
  streams: readonly number[],
  { fromLedger, toLedger }: { fromLedger: number; toLedger: number },
): Promise<boolean> {
  const isWithin = and(lte(archiveFinalRanges.fromLedger, fromLedger), gte(archiveFinalRanges.throughLedger, toLedger))
  const covering = await db.$count(archiveFinalRanges, and(inArray(archiveFinalRanges.stream, [...streams]), isWithin))
  return covering === streams.length
}

/** The ranges of the token's own events. */
export async function findTokenRanges(db: Database, token: string): Promise<StoredRange[]> {
  const isOwn = and(eq(archiveStreams.token, token), eq(archiveStreams.role, 'token'))
  const streams = await db.select({ id: archiveStreams.id }).from(archiveStreams).where(isOwn)
  return await findRanges(
    db,
    streams.map(({ id }) => id),
  )
}

/**
 * Begins the archive of a token at the RPC's oldest ledger, whose hash identifies it, if there is none.
 * @throws LedgerError `unavailable`
 */
export async function openStreams(
  db: Database,
  { network, token }: { network: Network; token: string },
  { oldestLedger }: Window,
): Promise<void> {
  if ((await db.$count(archiveStreams, eq(archiveStreams.token, token))) > 0) return
  const { hash } = await readLedgerHead(network, oldestLedger)
  await db
    .insert(archiveStreams)
    .values({ token, contract: token, role: 'token', generation: hash })
    .onConflictDoNothing()
}

/** Adds the registries that a token names to the ingested contracts. Existing ones are unchanged. */
export async function addRegistries(db: Database, token: string, contracts: readonly string[]): Promise<void> {
  if (contracts.length === 0) return
  await db
    .insert(archiveStreams)
    .values([...new Set(contracts)].map((contract) => ({ token, contract, role: 'registry' as const })))
    .onConflictDoNothing()
}
