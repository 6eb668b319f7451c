import { and, eq, inArray, isNull, notInArray, or, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import { type ChannelProblem, relayChannels, type StopProblem } from '#drizzle/schema/relay.ts'
import { type Actor, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { paymentsGoOn, readStop } from '#lib/transfers/stop.ts'
import type { Relay, RelayStore } from './relay.ts'

/** A channel's row. Its opening and its balance are sealed. */
export type ChannelRecord = typeof relayChannels.$inferSelect

/** A channel that no relay has announced for this long (ms) belongs to no running relay. */
export const STALE_AFTER_MS = 60_000

/** Whether a channel that was last announced at `seenAt` belongs to a running relay. */
export const isSeenLately = (seenAt: Date, now: Date): boolean => now.getTime() - seenAt.getTime() < STALE_AFTER_MS

/** `isSeenLately` by the database's clock: a host's own may be minutes off. */
export const IS_SEEN = sql<boolean>`${relayChannels.seenAt} > clock_timestamp() - make_interval(secs => ${STALE_AFTER_MS / 1000})`

/** The problems that do not keep a channel from paying out of a delegation: it needs no balance for that. */
export const RUN_PROBLEMS: readonly ChannelProblem[] = ['balance', 'history']

/** The condition for channels that no problem keeps from paying out of a delegation. */
export const PAYS_RUNS = sql`(${or(isNull(relayChannels.problem), inArray(relayChannels.problem, [...RUN_PROBLEMS]))})`

export const isChannel = (token: string, address: string) =>
  and(eq(relayChannels.token, token), eq(relayChannels.address, address))

/**
 * Why a channel keeps payments stopped during the stop that began at `since`; null if it does not, or only waits. A payment of unknown
 * purpose has a row once the channel is reconciled: only an operator can tell whether it was instructed again.
 */
export const problemDuring = (since: SQLWrapper) => {
  const { reconciledStop, reconcileProblem, hasUnknownPurpose } = relayChannels
  return sql<StopProblem | null>`case when ${reconciledStop} is distinct from ${since} then ${reconcileProblem}
    when ${hasUnknownPurpose} then 'purpose-unknown' end`
}

/** The condition for the channels of a token that no operator has retired. */
export const isInUse = (token: string) => and(eq(relayChannels.token, token), eq(relayChannels.retired, false))

/**
 * Records that a running relay has the keys of its channels. A new channel has the problem `account` until its first check.
 * @param runProblem why it cannot prove payments from a delegation: null if it can, undefined if that is not known yet
 */
export async function announceChannels({ database, token, channels }: Relay, runProblem?: string | null) {
  const runs = runProblem === undefined ? undefined : runProblem === null
  const seenAt = sql`clock_timestamp()`
  // Every transaction locks channels in the order of addresses, so that no two wait for each other.
  const addresses = channels.map(({ address }) => address).toSorted()
  if (addresses.length === 0) return
  const announced = { token, seenAt, problem: 'account' as const, runs: runs ?? false, runProblem }
  await (await database())
    .insert(relayChannels)
    .values(addresses.map((address) => ({ ...announced, address })))
    .onConflictDoUpdate({ target: [relayChannels.token, relayChannels.address], set: { seenAt, runs, runProblem } })
}

export async function findChannel(store: RelayStore, address: string): Promise<ChannelRecord | undefined> {
  const [record] = await (await store.database()).select().from(relayChannels).where(isChannel(store.token, address))
  return record
}

export function findChannels(db: Database, token: string): Promise<ChannelRecord[]> {
  return db.select().from(relayChannels).where(eq(relayChannels.token, token)).orderBy(relayChannels.address)
}

/** Sets columns of a channel's row if it meets the condition. */
export async function setChannel(
  { database, token }: RelayStore,
  address: string,
  columns: PgUpdateSetSource<typeof relayChannels>,
  condition?: SQL,
): Promise<void> {
  const isThis = and(isChannel(token, address), condition)
  await (await database()).update(relayChannels).set(columns).where(isThis)
}

/** Records a channel's problem; null clears it. */
export const recordProblem = (store: RelayStore, address: string, problem: ChannelProblem | null): Promise<void> =>
  setChannel(store, address, { problem }, sql`${relayChannels.problem} is distinct from ${problem}`)

/** What an operator can do to a channel, and to which. */
const CHANGES = {
  /** It finishes its payment and leases no line. */
  paused: { columns: { paused: true }, condition: eq(relayChannels.paused, false) },
  resumed: { columns: { paused: false }, condition: eq(relayChannels.paused, true) },
  /** It pays nothing more, and is not compared with the ledger any more. */
  retired: {
    columns: { retired: true, reconcileProblem: null, hasUnknownPurpose: false },
    condition: eq(relayChannels.retired, false),
  },
}

/** Pauses, resumes or retires a channel, for an operator's reason. False, and not in the audit log, if there is nothing to change. */
export async function changeChannel(
  { db, now, actor }: { db: Database; now: Date; actor: Actor },
  { token, address, change, note }: { token: string; address: string; change: keyof typeof CHANGES; note: string },
): Promise<boolean> {
  const { columns, condition } = CHANGES[change]
  return await transact(db, async (tx) => {
    const isThis = and(isChannel(token, address), condition)
    const changed = await tx
      .update(relayChannels)
      .set(columns)
      .where(isThis)
      .returning({ address: relayChannels.address })
    if (changed.length === 0) return false
    const entry = { organisation: undefined, actor, action: `channel.${change}` as const, subject: address }
    await recordAudit(tx, now, { ...entry, detail: { note } })
    return true
  })
}

/** Whether one of a relay's own channels may pay a line, of a job or of a run. */
export async function isAnyFit({ database, token, channels }: Relay): Promise<boolean> {
  const own = channels.map(({ address }) => address)
  const mayPay = and(inArray(relayChannels.address, own), PAYS_RUNS, eq(relayChannels.paused, false))
  return (await (await database()).$count(relayChannels, and(isInUse(token), mayPay))) > 0
}

/** Whether a running relay has a channel outside `unable` that may have enough for a line. */
export async function isAnyAble({ database, token }: RelayStore, unable: readonly string[]): Promise<boolean> {
  // `history`: a later check may find the channel's balance. The other problems leave it nothing to pay with.
  const mayPay = or(isNull(relayChannels.problem), eq(relayChannels.problem, 'history'))
  const isElsewhere = and(isInUse(token), notInArray(relayChannels.address, [...unable]))
  return (await (await database()).$count(relayChannels, and(isElsewhere, IS_SEEN, mayPay))) > 0
}

/**
 * All channels of the token but the retired ones, by address. `isWired`: a running relay announces the channel that can prove
 * payments from a delegation; `isAvailable`: nothing else keeps it from paying. None is available while payments are stopped.
 */
export function findRunChannels(db: Database, token: string) {
  const { address, runs, paused } = relayChannels
  const isWired = sql<boolean>`${IS_SEEN} and ${runs}`
  const isAvailable = sql<boolean>`${isWired} and ${PAYS_RUNS} and not ${paused} and ${paymentsGoOn(token)}`
  return db.select({ address, isWired, isAvailable }).from(relayChannels).where(isInUse(token)).orderBy(address)
}

/** The state of all running relays, as the database shows it: of channels that they announce. */
export async function readRelayState(db: Database, token: string, now: Date) {
  const channels = (await findChannels(db, token)).filter((each) => !each.retired && isSeenLately(each.seenAt, now))
  const stop = await readStop(db, token)
  /** whether any relay can pay runs */
  const runs = channels.some((channel) => channel.runs)
  const runProblems = runs ? [] : channels.flatMap(({ runProblem }) => runProblem ?? [])
  return {
    channels: channels.length,
    /** one line for each channel that has a problem: `G…: registration` */
    problems: channels.flatMap(({ address, problem }) => (problem === null ? [] : [`${address}: ${problem}`])),
    /** whether any channel can pay at all */
    canPay: !stop && channels.some(({ problem }) => problem === null),
    /** when payments were stopped; undefined while they go on */
    stoppedAt: stop?.since,
    runs,
    /** why no relay can, in their words; empty if one can, or none has found out yet */
    runProblems: [...new Set(runProblems)],
  }
}
