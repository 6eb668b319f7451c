import { and, asc, eq, inArray, isNull, lte, not, or, sql } from 'drizzle-orm'
import { batchItems, batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { type ChannelRecord, isChannel } from './channels.ts'
import { type Item, isItem, isOpen, oldestFirst } from './items.ts'
import type { Relay } from './relay.ts'
import type { ItemId } from './sealing.ts'

/** The parts of a relay that moving channels between items needs. */
export type Holding = Pick<Relay, 'database' | 'token' | 'channels' | 'queue' | 'now'>

/** The item with its channel, under a new attempt; or the reason why no worker can pay it now. */
type TakenUp = { item: Item & { channel: string } } | 'ended' | 'no-channel' | 'doubted'

// Every transaction takes its locks in this order, so that no two wait for each other: the job, the item, the item that
// is reserved on its channel, then channels by address. Only a free channel is locked out of order, and without
// waiting.

/**
 * Gives an item to a worker in one SQL transaction, with the channel that the item holds already, else with a free one.
 * No worker waits for a channel here, and two workers never get the same one. An unsigned item gives its channel back
 * if this relay does not have the channel's seed; a signed item needs no seed.
 */
export async function takeUp(holding: Holding, id: ItemId): Promise<TakenUp> {
  const addresses = holding.channels.map(({ address }) => address)
  return await transact(await holding.database(), async (tx) => {
    const [item] = await tx.select().from(batchItems).where(isItem(id)).for('update')
    if (!item || !isOpen(item)) return 'ended'
    if (item.status === 'queued' && item.doubtedUntil && item.doubtedUntil > holding.now()) return 'doubted'
    const keeps = item.status === 'signed' || (item.status === 'taken' && addresses.includes(item.channel ?? ''))
    if (item.status === 'taken' && !keeps) await giveUp(tx, holding, item)
    const channel = keeps ? item.channel : await acquire(tx, holding, item)
    if (channel === null) return 'no-channel'
    const status = item.status === 'signed' ? 'signed' : 'taken'
    const [taken] = await tx
      .update(batchItems)
      .set({ status, channel, attempt: sql`${batchItems.attempt} + 1` })
      .where(isItem(id))
      .returning()
    if (!taken) throw new Error('the update of a locked item returned no row')
    if (!keeps) await tx.update(relayChannels).set(heldBy(id)).where(isChannel(holding.token, channel))
    return { item: { ...taken, channel } }
  })
}

const heldBy = ({ job, position }: ItemId) => ({ itemJob: job, itemPosition: position })
const isHeldBy = ({ job, position }: ItemId) =>
  and(eq(relayChannels.itemJob, job), eq(relayChannels.itemPosition, position))
const isReservedFor = ({ job, position }: ItemId) =>
  and(eq(relayChannels.nextJob, job), eq(relayChannels.nextPosition, position))
const NO_NEXT = { nextJob: null, nextPosition: null }

/**
 * Locks a free channel that may have enough for the item; null if there is none. Ends the item's reservation, if any.
 */
async function acquire(tx: Database, { token, channels }: Holding, item: Item): Promise<string | null> {
  await tx.update(relayChannels).set(NO_NEXT).where(isReservedFor(item))
  const own = channels.map(({ address }) => address).filter((address) => !item.unable.includes(address))
  if (own.length === 0) return null
  const [free] = await tx
    .select({ address: relayChannels.address })
    .from(relayChannels)
    .where(
      and(
        eq(relayChannels.token, token),
        inArray(relayChannels.address, own),
        isNull(relayChannels.itemJob),
        isNull(relayChannels.problem),
      ),
    )
    .limit(1)
    .for('update', { skipLocked: true })
  return free?.address ?? null
}

async function giveUp(tx: Database, holding: Holding, item: Item): Promise<void> {
  await tx
    .update(batchItems)
    .set({ status: 'queued', channel: null, attempt: sql`${batchItems.attempt} + 1` })
    .where(isItem(item))
  await releaseChannel(tx, holding, item)
}

/**
 * Frees the channel that an item held, in the SQL transaction in which the item moved on. The item that is reserved on
 * the channel gets it. If there is none, the message of the oldest waiting item becomes due at once.
 * @param left the sealed opening of what the channel has left, if the item was paid
 */
export async function releaseChannel(
  tx: Database,
  holding: Pick<Holding, 'queue' | 'now'>,
  item: ItemId,
  left?: { sealedOpening: string | null; problem: null },
): Promise<void> {
  const [seen] = await tx.select().from(relayChannels).where(isHeldBy(item))
  const waiting = seen && nextOf(seen)
  if (waiting) await tx.select({ job: batchItems.job }).from(batchItems).where(isItem(waiting)).for('update')
  const [channel] = await tx.select().from(relayChannels).where(isHeldBy(item)).for('update')
  if (!channel) return
  const { token, address, problem } = { ...channel, ...left }
  const next = nextOf(channel)
  const isSame = waiting && next?.job === waiting.job && next.position === waiting.position
  const begun = isSame && problem === null ? await beginNext(tx, next, address) : false
  await tx
    .update(relayChannels)
    .set({ itemJob: null, itemPosition: null, ...(begun && next && heldBy(next)), ...NO_NEXT, ...left })
    .where(isChannel(token, address))
  if (!begun && problem === null) await hurryOldest(tx, holding, address)
}

function nextOf({ nextJob, nextPosition }: ChannelRecord): ItemId | undefined {
  return nextJob !== null && nextPosition !== null ? { job: nextJob, position: nextPosition } : undefined
}

async function beginNext(tx: Database, next: ItemId, channel: string): Promise<boolean> {
  const begun = await tx
    .update(batchItems)
    .set({ status: 'taken', channel })
    .where(and(isItem(next), eq(batchItems.status, 'queued')))
    .returning({ job: batchItems.job })
  return begun.length > 0
}

async function hurryOldest(
  tx: Database,
  { queue, now }: Pick<Holding, 'queue' | 'now'>,
  channel: string,
): Promise<void> {
  const reserved = sql`EXISTS (SELECT 1 FROM ${relayChannels}
    WHERE ${relayChannels.nextJob} = ${batchItems.job} AND ${relayChannels.nextPosition} = ${batchItems.position})`
  const [oldest] = await tx
    .select({ job: batchItems.job, position: batchItems.position })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .where(
      and(
        eq(batchItems.status, 'queued'),
        eq(batchJobs.relayKey, queue.relayKey),
        sql`NOT (${channel} = ANY(${batchItems.unable}))`,
        or(isNull(batchItems.doubtedUntil), lte(batchItems.doubtedUntil, now())),
        not(reserved),
      ),
    )
    .orderBy(...oldestFirst)
    .limit(1)
  if (oldest) await queue.hurry(tx, oldest)
}

/**
 * Reserves for `item` the channel that `held` holds, so that its proof can be made ahead. Resolves to the item under a
 * new attempt; undefined if one of the two has moved on, or the channel is reserved for another item.
 */
export async function reserveNext(
  { database, token }: Holding,
  item: Item,
  held: ItemId & { channel: string },
): Promise<Item | undefined> {
  return await transact(await database(), async (tx) => {
    const [reserved] = await tx
      .update(batchItems)
      .set({ attempt: sql`${batchItems.attempt} + 1` })
      .where(and(isItem(item), eq(batchItems.status, 'queued'), eq(batchItems.attempt, item.attempt)))
      .returning()
    if (!reserved) return undefined
    const same = isReservedFor(item)
    await tx
      .select({ address: relayChannels.address })
      .from(relayChannels)
      .where(or(same, isHeldBy(held)))
      .orderBy(asc(relayChannels.address))
      .for('update')
    await tx
      .update(relayChannels)
      .set(NO_NEXT)
      .where(and(same, not(isHeldBy(held) ?? sql`true`)))
    const [channel] = await tx
      .update(relayChannels)
      .set({ nextJob: item.job, nextPosition: item.position })
      .where(and(isChannel(token, held.channel), isHeldBy(held), or(isNull(relayChannels.nextJob), same)))
      .returning({ address: relayChannels.address })
    return channel && reserved
  })
}

/** Ends an item's reservation without using it. */
export async function cancelNext({ database }: Holding, item: ItemId): Promise<void> {
  await (await database()).update(relayChannels).set(NO_NEXT).where(isReservedFor(item))
}
