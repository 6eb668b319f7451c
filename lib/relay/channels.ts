import { and, eq, gte, isNull, notInArray, or, sql } from 'drizzle-orm'
import { type ChannelProblem, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import type { Relay } from './relay.ts'

/** What the database has of a channel; openings and balances are sealed. */
export type ChannelRecord = typeof relayChannels.$inferSelect

/** A channel whose key no relay has had for so long (ms) belongs to no relay that runs. */
export const STALE_AFTER = 60_000

/** Whether a relay that runs has a channel which was last announced at `seenAt`. */
export const isSeenLately = (seenAt: Date, now: Date): boolean => now.getTime() - seenAt.getTime() < STALE_AFTER

export const isChannel = (token: string, address: string) =>
  and(eq(relayChannels.token, token), eq(relayChannels.address, address))

/** Where the relays of a token keep what they know of channels. */
type Keeping = Pick<Relay, 'database' | 'token'>

/** Says that the relay runs, and has the keys of its channels. A channel that is new is unfit until it is checked. */
export async function announceChannels({ database, token, channels, now }: Relay): Promise<void> {
  const seenAt = now()
  // In the order of addresses, as everybody who locks several does.
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
 * Keeps what a channel owns, sealed. A `readAt` of null has the next check read it anew. What opens the balance stays then:
 * a node that lags may have spoken, and where the events are lost nothing else opens it.
 */
export async function keepBalance(
  { database, token }: Keeping,
  address: string,
  balance: Pick<ChannelRecord, 'readAt'> & Partial<Pick<ChannelRecord, 'sealedBalance' | 'sealedOpening'>>,
): Promise<void> {
  await (await database()).update(relayChannels).set(balance).where(isChannel(token, address))
}

/** Notes what is wrong with a channel, or that nothing is. */
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

/** Whether a channel of a relay that runs, other than those in `unable`, may have enough for an item. */
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
        // What a channel owns whose history is lost, a later check may tell. The other faults leave it nothing to pay with.
        or(isNull(relayChannels.problem), eq(relayChannels.problem, 'history')),
        notInArray(relayChannels.address, [...unable]),
      ),
    )
    .limit(1)
  return able !== undefined
}

/** How the relays of a database are, as everything that has the database can find out. */
interface RelayState {
  /** whether any relay runs */
  isRunning: boolean
  /** channels of which a relay that runs has the key */
  channels: number
  /** what is wrong with some of them: `G…: registration` */
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
