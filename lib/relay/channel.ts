import { and, asc, eq, inArray, isNotNull, isNull, lte, not, or, sql } from 'drizzle-orm'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { type ChannelRecord, isChannel, isFitFor, isSuspendedBy, RUN_PROBLEMS } from './channel-state.ts'
import { type HeldItem, type Item, type ItemId, isItem, oldestFirst } from './item-row.ts'
import type { Relay, RelayStore } from './relay.ts'

// Every transaction takes its locks in this order, so that no two wait for each other: the job, the item, the item that
// is reserved on its channel, then channels by address. Only a free channel is locked out of order, and without
// waiting.

const heldBy = ({ job, position }: ItemId) => ({ itemJob: job, itemPosition: position })
const isHeldBy = ({ job, position }: ItemId) =>
  and(eq(relayChannels.itemJob, job), eq(relayChannels.itemPosition, position))
const isReservedFor = ({ job, position }: ItemId) =>
  and(eq(relayChannels.nextJob, job), eq(relayChannels.nextPosition, position))
const NO_NEXT = { nextJob: null, nextPosition: null }

/**
 * Why an item gets no channel. `busy`: other items hold every channel of this relay that could pay it. `unfit`: no
 * channel of this relay can pay it.
 */
export type NotAcquired = 'busy' | 'unfit'

/**
 * Gives a free channel of this relay to the item, in the SQL transaction that takes the item, and ends the item's
 * reservation, if any.
 */
export async function acquire(tx: Database, relay: Relay, item: Item): Promise<{ channel: string } | NotAcquired> {
  const { token, channels } = relay
  await tx.update(relayChannels).set(NO_NEXT).where(isReservedFor(item))
  const own = channels.map(({ address }) => address).filter((address) => !item.unable.includes(address))
  const isFit = and(eq(relayChannels.token, token), inArray(relayChannels.address, own), isFitFor(item))
  // Its channel may be free, but it is another employer's turn, whose item is on its way.
  const spender = item.spender === null ? undefined : { token, address: item.spender }
  if (spender && (await ownerInTurn(tx, relay, spender)) !== item.quotaAccount) return 'busy'
  const [free] = await tx
    .select({ address: relayChannels.address })
    .from(relayChannels)
    .where(and(isFit, isNull(relayChannels.itemJob)))
    .limit(1)
    .for('update', { skipLocked: true })
  if (!free) return (await tx.$count(relayChannels, isFit)) > 0 ? 'busy' : 'unfit'
  await tx.update(relayChannels).set(heldBy(item)).where(isChannel(token, free.address))
  return { channel: free.address }
}

/**
 * Releases the channel that an item held, in the SQL transaction that moves the item on. The item that is reserved on
 * the channel gets it. If there is none, the message of the oldest waiting item becomes due at once.
 * @param sealedOpening the sealed opening of the channel's remaining balance, if the item was paid
 */
export async function release(tx: Database, store: RelayStore, item: ItemId, sealedOpening?: string): Promise<void> {
  const [seen] = await tx.select().from(relayChannels).where(isHeldBy(item))
  const waiting = seen && nextOf(seen)
  if (waiting) await tx.select({ job: batchItems.job }).from(batchItems).where(isItem(waiting)).for('update')
  const [channel] = await tx.select().from(relayChannels).where(isHeldBy(item)).for('update')
  if (!channel) return
  const { token, address } = channel
  // A payment proves that the channel can pay, but only an operator can release a channel with the problem `moved`.
  const problem = sealedOpening !== undefined && channel.problem !== 'moved' ? null : channel.problem
  const next = nextOf(channel)
  const isSame = waiting && next?.job === waiting.job && next.position === waiting.position
  const hasNext = isSame && (await takeNext(tx, next, { ...channel, problem }))
  await tx
    .update(relayChannels)
    .set({
      ...(hasNext ? heldBy(next) : { itemJob: null, itemPosition: null }),
      ...NO_NEXT,
      problem,
      ...(sealedOpening !== undefined && { sealedOpening }),
    })
    .where(isChannel(token, address))
  if (!hasNext) await hurryOldest(tx, store, { ...channel, problem })
}

function nextOf({ nextJob, nextPosition }: ChannelRecord): ItemId | undefined {
  return nextJob !== null && nextPosition !== null ? { job: nextJob, position: nextPosition } : undefined
}

/** The condition for the items that a channel with this problem may pay. */
function isPayableBy({ problem, paused }: Pick<ChannelRecord, 'problem' | 'paused'>) {
  if (paused) return sql`false`
  if (problem === null) return undefined
  return RUN_PROBLEMS.includes(problem) ? isNotNull(batchItems.spender) : sql`false`
}

async function takeNext(tx: Database, next: ItemId, channel: ChannelRecord): Promise<boolean> {
  const taken = await tx
    .update(batchItems)
    .set({ status: 'taken', channel: channel.address })
    .where(and(isItem(next), eq(batchItems.status, 'queued'), isPayableBy(channel)))
    .returning({ job: batchItems.job })
  return taken.length > 0
}

/**
 * The employer whose item a channel pays next: the one that has waited longest for a payment of this channel. Undefined
 * without a waiting item of a run.
 * @param held the employer whose item holds the channel, which comes last
 */
async function ownerInTurn(
  tx: Database,
  { queue }: Pick<RelayStore, 'queue'>,
  { token, address: channel }: Pick<ChannelRecord, 'token' | 'address'>,
  held = '',
): Promise<string | undefined> {
  const settled = sql`(select max(settled.settled_at) from ${batchItems} as settled
    where settled.spender = ${channel} and settled.quota_account = ${batchItems.quotaAccount})`
  const [next] = await tx
    .select({ owner: batchItems.quotaAccount })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .where(and(eq(batchItems.spender, channel), eq(batchJobs.relayKey, queue.relayKey), isWaiting(token)))
    .groupBy(batchItems.quotaAccount)
    .orderBy(
      sql`${batchItems.quotaAccount} = ${held}`,
      sql`${settled} asc nulls first`,
      sql`min(${batchItems.queuedAt})`,
      batchItems.quotaAccount,
    )
    .limit(1)
  return next?.owner
}

/** Items that no channel may pay now must not keep those of other employers from their turn. */
const isWaiting = (token: string) =>
  and(
    eq(batchItems.status, 'queued'),
    or(isNull(batchItems.doubtedUntil), lte(batchItems.doubtedUntil, sql`clock_timestamp()`)),
    not(isSuspendedBy(token)),
  )

async function hurryOldest(tx: Database, { queue }: RelayStore, channel: ChannelRecord): Promise<void> {
  const owner = await ownerInTurn(tx, { queue }, channel)
  const isInTurn = and(eq(batchItems.spender, channel.address), eq(batchItems.quotaAccount, owner ?? ''))
  const reserved = sql`EXISTS (SELECT 1 FROM ${relayChannels}
    WHERE ${relayChannels.nextJob} = ${batchItems.job} AND ${relayChannels.nextPosition} = ${batchItems.position})`
  const [oldest] = await tx
    .select({ job: batchItems.job, position: batchItems.position })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .where(
      and(
        isWaiting(channel.token),
        eq(batchJobs.relayKey, queue.relayKey),
        sql`NOT (${channel.address} = ANY(${batchItems.unable}))`,
        or(isNull(batchItems.spender), isInTurn),
        isPayableBy(channel),
        not(reserved),
      ),
    )
    .orderBy(...oldestFirst)
    .limit(1)
  if (oldest) await queue.hurry(tx, oldest)
}

/**
 * Reserves the channel of `held` for `item`, so that its proof can be generated ahead of time. Resolves to the item
 * under a new attempt; undefined if either item has changed state, or the channel is reserved for another item.
 */
export async function reserve(relay: Relay, item: Item, held: HeldItem): Promise<Item | undefined> {
  return await transact(await relay.database(), async (tx) => {
    const [reserved] = await tx
      .update(batchItems)
      .set({ attempt: sql`${batchItems.attempt} + 1` })
      .where(and(isItem(item), eq(batchItems.status, 'queued'), eq(batchItems.attempt, item.attempt)))
      .returning()
    if (!reserved) return undefined
    const isBound = item.spender !== null
    const own = { token: relay.token, address: held.channel }
    if (isBound && (await ownerInTurn(tx, relay, own, held.quotaAccount)) !== item.quotaAccount) return undefined
    const isOwn = isReservedFor(item)
    await tx
      .select({ address: relayChannels.address })
      .from(relayChannels)
      .where(or(isOwn, isHeldBy(held)))
      .orderBy(asc(relayChannels.address))
      .for('update')
    await tx
      .update(relayChannels)
      .set(NO_NEXT)
      .where(and(isOwn, not(isHeldBy(held) ?? sql`true`)))
    const [channel] = await tx
      .update(relayChannels)
      .set({ nextJob: item.job, nextPosition: item.position })
      .where(and(isChannel(relay.token, held.channel), isHeldBy(held), or(isNull(relayChannels.nextJob), isOwn)))
      .returning({ address: relayChannels.address })
    return channel && reserved
  })
}

/** Ends an item's reservation without using it. */
export async function cancelReservation(relay: Relay, item: ItemId): Promise<void> {
  await (await relay.database()).update(relayChannels).set(NO_NEXT).where(isReservedFor(item))
}
