import { and, eq, inArray, isNull, notInArray, or, sql } from 'drizzle-orm'
import { type ChannelProblem, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'

/** What the database has of a channel; openings and balances are sealed. */
export type ChannelRecord = typeof relayChannels.$inferSelect

const isChannel = (token: string, address: string) =>
  and(eq(relayChannels.token, token), eq(relayChannels.address, address))

/** Says that somebody who runs has the keys of these channels. */
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
    .values(addresses.toSorted().map((address) => ({ token, address, seenAt: now })))
    .onConflictDoUpdate({ target: [relayChannels.token, relayChannels.address], set: { seenAt: now } })
}

export async function findChannel(db: Database, token: string, address: string): Promise<ChannelRecord | undefined> {
  const [found] = await db.select().from(relayChannels).where(isChannel(token, address))
  return found
}

export function findChannels(db: Database, token: string): Promise<ChannelRecord[]> {
  return db.select().from(relayChannels).where(eq(relayChannels.token, token)).orderBy(relayChannels.address)
}

/** Keeps what a channel holds, sealed. */
export async function keepBalance(
  db: Database,
  token: string,
  address: string,
  sealed: { sealedBalance: string; sealedOpening: string },
): Promise<void> {
  await db.update(relayChannels).set(sealed).where(isChannel(token, address))
}

/** Forgets what opens a channel's balance: the ledger says otherwise, and its events have to be read. */
export async function forgetOpening(db: Database, token: string, address: string): Promise<void> {
  await db.update(relayChannels).set({ sealedOpening: null }).where(isChannel(token, address))
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

/** Whether any channel but those in `unable` might pay: one that is short of money may still have enough for this. */
export async function isAnybodyAble(
  db: Database,
  token: string,
  unable: readonly string[],
  since: Date,
): Promise<boolean> {
  const [able] = await db
    .select({ address: relayChannels.address })
    .from(relayChannels)
    .where(
      and(
        eq(relayChannels.token, token),
        sql`${relayChannels.seenAt} >= ${since.toISOString()}::timestamptz`,
        or(isNull(relayChannels.problem), inArray(relayChannels.problem, ['balance'])),
        unable.length > 0 ? notInArray(relayChannels.address, [...unable]) : undefined,
      ),
    )
    .limit(1)
  return able !== undefined
}
