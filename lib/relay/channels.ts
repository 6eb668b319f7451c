import { and, eq, gte, isNull, notInArray, or, sql } from 'drizzle-orm'
import { type ChannelProblem, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Relay } from './relay.ts'

/** A channel's row. Its opening and its balance are sealed. */
export type ChannelRecord = typeof relayChannels.$inferSelect

/** A channel that no relay has announced for this long (ms) belongs to no running relay. */
export const STALE_AFTER = 60_000

/** Whether a channel that was last announced at `seenAt` belongs to a running relay. */
export const isSeenLately = (seenAt: Date, now: Date): boolean => now.getTime() - seenAt.getTime() < STALE_AFTER

export const isChannel = (token: string, address: string) =>
  and(eq(relayChannels.token, token), eq(relayChannels.address, address))

/** A token, and the database in which its relays keep their channels. */
type Keeping = Pick<Relay, 'database' | 'token'>

/**
 * Records that a running relay has the keys of its channels. A new channel has the problem `account` until its first
 * check.
 */
export async function announceChannels({ database, token, channels, now }: Relay): Promise<void> {
  const seenAt = now()
  // Every transaction locks channels in the order of addresses, so that no two wait for each other.
  const addresses = channels.map(({ address }) => address).toSorted()
  if (addresses.length === 0) return
  await (await database())
    .insert(relayChannels)
    .values(addresses.map((address) => ({ token, address, seenAt, problem: 'account' as const })))
    .onConflictDoUpdate({ target: [relayChannels.token, relayChannels.address], set: { seenAt } })
}

export async function findChannel({ database, token }: Keeping, address: string): Promise<ChannelRecord | undefined> {
  const [found] = await (await database()).select().from(relayChannels).where(isChannel(token, address))
  return found
}

export function findChannels(db: Database, token: string): Promise<ChannelRecord[]> {
  return db.select().from(relayChannels).where(eq(relayChannels.token, token)).orderBy(relayChannels.address)
}

/**
 * Stores a channel's sealed balance. If `readAt` is null, the next check reads the balance again. The stored opening
 * stays until then: the answer that put it in doubt may come from a lagging node, and without events nothing else opens
 * the balance.
 */
export async function keepBalance(
  { database, token }: Keeping,
  address: string,
  balance: Pick<ChannelRecord, 'readAt'> & Partial<Pick<ChannelRecord, 'sealedBalance' | 'sealedOpening'>>,
): Promise<void> {
  await (await database()).update(relayChannels).set(balance).where(isChannel(token, address))
}

/** Records a channel's problem; null clears it. */
export async function noteProblem(
  { database, token }: Keeping,
  address: string,
  problem: ChannelProblem | null,
): Promise<void> {
  await (await database())
    .update(relayChannels)
    .set({ problem })
    .where(and(isChannel(token, address), sql`${relayChannels.problem} IS DISTINCT FROM ${problem}`))
}

/** Whether a running relay has a channel outside `unable` that may have enough for an item. */
export async function isAnyAble(
  { database, token, now }: Keeping & Pick<Relay, 'now'>,
  unable: readonly string[],
): Promise<boolean> {
  const since = new Date(now().getTime() - STALE_AFTER)
  const [able] = await (await database())
    .select({ address: relayChannels.address })
    .from(relayChannels)
    .where(
      and(
        eq(relayChannels.token, token),
        gte(relayChannels.seenAt, since),
        // `history`: a later check may find out what the channel owns. The other problems leave it nothing to pay with.
        or(isNull(relayChannels.problem), eq(relayChannels.problem, 'history')),
        notInArray(relayChannels.address, [...unable]),
      ),
    )
    .limit(1)
  return able !== undefined
}

/** The state of all relays, as the database shows it. */
interface RelayState {
  /** whether any relay runs */
  isRunning: boolean
  /** how many channels belong to running relays */
  channels: number
  /** one line for each of them that has a problem: `G…: registration` */
  problems: string[]
  /** whether any channel can pay at all */
  canPay: boolean
}

export async function readRelayState(db: Database, token: string, now: Date): Promise<RelayState> {
  const channels = (await findChannels(db, token)).filter(({ seenAt }) => isSeenLately(seenAt, now))
  return {
    isRunning: channels.length > 0,
    channels: channels.length,
    problems: channels.flatMap(({ address, problem }) => (problem === null ? [] : [`${address}: ${problem}`])),
    canPay: channels.some(({ problem }) => problem === null),
  }
}
