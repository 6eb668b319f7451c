import { and, eq, isNull, notInArray, or, sql } from 'drizzle-orm'
import { type ChannelProblem, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'

/** What the database has of a channel; openings and balances are sealed. */
export type ChannelRecord = typeof relayChannels.$inferSelect

/** A channel whose key no relay has had for so long (ms) belongs to no relay that runs. */
export const STALE_AFTER = 60_000

/** Whether a relay that runs has a channel which was last announced at `seenAt`. */
export const isSeenLately = (seenAt: Date, now: Date): boolean => now.getTime() - seenAt.getTime() < STALE_AFTER

export const isChannel = (token: string, address: string) =>
  and(eq(relayChannels.token, token), eq(relayChannels.address, address))

/** Says that a relay which runs has the keys of these channels. A channel that is new is unfit until it is checked. */
export async function announceChannels(
  db: Database,
  token: string,
  addresses: readonly string[],
  now: Date,
): Promise<void> {
  if (addresses.length === 0) return
  await db
    .insert(relayChannels)
    // In the order of addresses, as everybody who locks several does.
    .values(addresses.toSorted().map((address) => ({ token, address, seenAt: now, problem: 'account' as const })))
    .onConflictDoUpdate({ target: [relayChannels.token, relayChannels.address], set: { seenAt: now } })
}

export async function findChannel(db: Database, token: string, address: string): Promise<ChannelRecord | undefined> {
  const [found] = await db.select().from(relayChannels).where(isChannel(token, address))
  return found
}

export function findChannels(db: Database, token: string): Promise<ChannelRecord[]> {
  return db.select().from(relayChannels).where(eq(relayChannels.token, token)).orderBy(relayChannels.address)
}

/** Keeps what a channel owns, sealed. */
export async function keepBalance(
  db: Database,
  token: string,
  address: string,
  sealed: { sealedBalance: string; sealedOpening: string; readAt: Date },
): Promise<void> {
  await db.update(relayChannels).set(sealed).where(isChannel(token, address))
}

/**
 * Has the next check read a channel's balance. What opens it stays: a node that lags may have spoken, and where the events
 * are lost nothing else opens the balance.
 */
export async function requestReading(db: Database, token: string, address: string): Promise<void> {
  await db.update(relayChannels).set({ readAt: null }).where(isChannel(token, address))
}

/** Notes what is wrong with a channel, or that nothing is. */
export async function noteProblem(
  db: Database,
  token: string,
  address: string,
  problem: ChannelProblem | null,
): Promise<void> {
  await db
    .update(relayChannels)
    .set({ problem })
    .where(and(isChannel(token, address), sql`${relayChannels.problem} IS DISTINCT FROM ${problem}`))
}

/** Whether a channel of a relay that runs, other than those in `unable`, may have enough for an item. */
export async function isAnyAble(db: Database, token: string, unable: readonly string[], now: Date): Promise<boolean> {
  const since = new Date(now.getTime() - STALE_AFTER)
  const [able] = await db
    .select({ address: relayChannels.address })
    .from(relayChannels)
    .where(
      and(
        eq(relayChannels.token, token),
        sql`${relayChannels.seenAt} >= ${since.toISOString()}::timestamptz`,
        // What a channel owns whose history is lost, a later check may tell. The other faults leave it nothing to pay with.
        or(isNull(relayChannels.problem), eq(relayChannels.problem, 'history')),
        unable.length > 0 ? notInArray(relayChannels.address, [...unable]) : undefined,
      ),
    )
    .limit(1)
  return able !== undefined
}
