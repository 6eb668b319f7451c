import { and, eq, inArray, isNull, notInArray, or, sql } from 'drizzle-orm'
import { type ChannelProblem, relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { paymentsGoOn, readStop } from '#lib/transfers/stop.ts'
import type { Relay } from './relay.ts'

/** A channel's row. Its opening and its balance are sealed. */
export type ChannelRecord = typeof relayChannels.$inferSelect

/** The part of a relay's context that finds a channel's row. */
export type ChannelStore = Pick<Relay, 'database' | 'token'>

/** A channel that no relay has announced for this long (ms) belongs to no running relay. */
export const STALE_AFTER_MS = 60_000

/** Whether a channel that was last announced at `seenAt` belongs to a running relay. */
export const isSeenLately = (seenAt: Date, now: Date): boolean => now.getTime() - seenAt.getTime() < STALE_AFTER_MS

/** `isSeenLately` by the database's clock: a host's own may be minutes off. */
export const IS_SEEN = sql<boolean>`${relayChannels.seenAt} > clock_timestamp() - make_interval(secs => ${STALE_AFTER_MS / 1000})`

export const isChannel = (token: string, address: string) =>
  and(eq(relayChannels.token, token), eq(relayChannels.address, address))

/**
 * Records that a running relay has the keys of its channels. A new channel has the problem `account` until its first
 * check.
 * @param runProblem why it cannot prove payments from a delegation: null if it can, undefined if that is not known yet
 */
export async function announceChannels(
  { database, token, channels }: Relay,
  runProblem?: string | null,
): Promise<void> {
  const runs = runProblem === undefined ? undefined : runProblem === null
  const seenAt = sql`clock_timestamp()`
  // Every transaction locks channels in the order of addresses, so that no two wait for each other.
  const addresses = channels.map(({ address }) => address).toSorted()
  if (addresses.length === 0) return
  await (await database())
    .insert(relayChannels)
    .values(
      addresses.map((address) => {
        return { token, address, seenAt, problem: 'account' as const, runs: runs ?? false, runProblem }
      }),
    )
    .onConflictDoUpdate({ target: [relayChannels.token, relayChannels.address], set: { seenAt, runs, runProblem } })
}

export async function findChannel(store: ChannelStore, address: string): Promise<ChannelRecord | undefined> {
  const [record] = await (await store.database()).select().from(relayChannels).where(isChannel(store.token, address))
  return record
}

export function findChannels(db: Database, token: string): Promise<ChannelRecord[]> {
  return db.select().from(relayChannels).where(eq(relayChannels.token, token)).orderBy(relayChannels.address)
}

/** The problems that do not keep a channel from paying out of a delegation: it needs no balance for that. */
export const RUN_PROBLEMS: readonly ChannelProblem[] = ['balance', 'history']

/** A channel, and whether it could pay from a delegation now. */
interface RunChannel {
  address: string
  /** whether a running relay announces it that can prove such payments */
  isWired: boolean
  /** whether nothing else keeps it from paying */
  isAvailable: boolean
}

/** All channels of the token but the retired ones, by address. None is available while payments are stopped. */
export async function findRunChannels(db: Database, token: string): Promise<RunChannel[]> {
  const { address, runs, paused, problem, retired } = relayChannels
  const isOn = sql<boolean>`${paymentsGoOn(token)}`
  const channels = await db
    .select({ address, runs, paused, problem, isSeen: IS_SEEN, isOn })
    .from(relayChannels)
    .where(and(eq(relayChannels.token, token), eq(retired, false)))
    .orderBy(address)
  return channels.map((channel) => {
    const isWired = channel.isSeen && channel.runs
    const isFit = channel.problem === null || RUN_PROBLEMS.includes(channel.problem)
    return { address: channel.address, isWired, isAvailable: channel.isOn && isWired && isFit && !channel.paused }
  })
}

/**
 * Stores a channel's sealed balance. If `readAt` is null, the next check reads the balance again. The stored opening
 * stays until then: the response that put it in doubt may come from a lagging node, and without events nothing else
 * opens the balance.
 */
export async function storeBalance(
  store: ChannelStore,
  address: string,
  balance: Pick<ChannelRecord, 'readAt'> & Partial<Pick<ChannelRecord, 'sealedBalance' | 'sealedOpening'>>,
): Promise<void> {
  await (await store.database()).update(relayChannels).set(balance).where(isChannel(store.token, address))
}

/** Records a channel's problem; null clears it. */
export async function recordProblem(
  store: ChannelStore,
  address: string,
  problem: ChannelProblem | null,
): Promise<void> {
  await (await store.database())
    .update(relayChannels)
    .set({ problem })
    .where(and(isChannel(store.token, address), sql`${relayChannels.problem} IS DISTINCT FROM ${problem}`))
}

/** Whether one of a relay's own channels may pay a line, of a job or of a run. */
export async function isAnyFit({ database, token, channels }: Relay): Promise<boolean> {
  const own = channels.map(({ address }) => address)
  const isOwn = and(eq(relayChannels.token, token), inArray(relayChannels.address, own))
  const mayPay = and(PAYS_RUNS, eq(relayChannels.paused, false), eq(relayChannels.retired, false))
  return (await (await database()).$count(relayChannels, and(isOwn, mayPay))) > 0
}

/** Whether a running relay has a channel outside `unable` that may have enough for a line. */
export async function isAnyAble(store: ChannelStore, unable: readonly string[]): Promise<boolean> {
  const db = await store.database()
  // `history`: a later check may find the channel's balance. The other problems leave it nothing to pay with.
  const mayPay = or(isNull(relayChannels.problem), eq(relayChannels.problem, 'history'))
  const isElsewhere = and(
    eq(relayChannels.token, store.token),
    notInArray(relayChannels.address, [...unable]),
    eq(relayChannels.retired, false),
  )
  return (await db.$count(relayChannels, and(isElsewhere, IS_SEEN, mayPay))) > 0
}

/** The condition for channels that could pay from a delegation: that takes no balance and no history of their own. */
export const PAYS_RUNS = sql`(${or(isNull(relayChannels.problem), inArray(relayChannels.problem, [...RUN_PROBLEMS]))})`

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
  /** when payments were stopped; undefined while they go on */
  stoppedAt: Date | undefined
  /** whether any running relay can pay runs */
  runs: boolean
  /** why none can, in the words of the relays; empty if one can, or none has found out yet */
  runProblems: string[]
}

export async function readRelayState(db: Database, token: string, now: Date): Promise<RelayState> {
  const channels = (await findChannels(db, token)).filter(
    ({ seenAt, retired }) => !retired && isSeenLately(seenAt, now),
  )
  const stop = await readStop(db, token)
  const runs = channels.some((channel) => channel.runs)
  const runProblems = runs ? [] : channels.flatMap(({ runProblem }) => runProblem ?? [])
  return {
    isRunning: channels.length > 0,
    channels: channels.length,
    problems: channels.flatMap(({ address, problem }) => (problem === null ? [] : [`${address}: ${problem}`])),
    canPay: !stop && channels.some(({ problem }) => problem === null),
    stoppedAt: stop?.since,
    runs,
    runProblems: [...new Set(runProblems)],
  }
}
