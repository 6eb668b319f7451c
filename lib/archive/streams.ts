import { and, asc, eq, inArray } from 'drizzle-orm'
import { archiveRanges, archiveStreams } from '#drizzle/schema/archive.ts'
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
