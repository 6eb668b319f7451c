import { and, eq, inArray, sql } from 'drizzle-orm'
import { batchItems, type ItemStatus } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'

/** An item as a lane works on it. `attempt` fences it: what was begun under an earlier one has no more say. */
export type Item = typeof batchItems.$inferSelect

/** Every legal move. `paid` and `failed` are final. */
export const ITEM_MOVES = {
  queued: ['taken', 'failed'],
  taken: ['signed', 'queued', 'failed'],
  signed: ['paid', 'queued', 'failed'],
  paid: [],
  failed: [],
} as const satisfies Record<ItemStatus, readonly ItemStatus[]>

/** The statuses from which `next` may be reached. */
function before(next: ItemStatus): ItemStatus[] {
  const from = Object.entries(ITEM_MOVES) as [ItemStatus, readonly ItemStatus[]][]
  return from.filter(([, moves]) => moves.includes(next)).map(([status]) => status)
}

/** Whether the item is where `next` may follow, and still in the same attempt. */
export const isAt = ({ job, position, attempt }: Item, next: ItemStatus) =>
  and(
    eq(batchItems.job, job),
    eq(batchItems.position, position),
    eq(batchItems.attempt, attempt),
    inArray(batchItems.status, before(next)),
  )

/** The item that a channel has begun and not ended, whoever it was that held the channel then. */
export async function findBegun(db: Database, channel: string): Promise<Item | undefined> {
  const [item] = await db
    .select()
    .from(batchItems)
    .where(and(eq(batchItems.channel, channel), inArray(batchItems.status, ['taken', 'signed'])))
  return item
}

/** The channels that have begun an item and not ended it. */
export async function findBegunChannels(db: Database): Promise<ReadonlySet<string>> {
  const begun = await db
    .select({ channel: batchItems.channel })
    .from(batchItems)
    .where(inArray(batchItems.status, ['taken', 'signed']))
  return new Set(begun.flatMap(({ channel }) => (channel === null ? [] : [channel])))
}

export async function findItem(
  db: Database,
  { job, position }: Pick<Item, 'job' | 'position'>,
): Promise<Item | undefined> {
  const [item] = await db
    .select()
    .from(batchItems)
    .where(and(eq(batchItems.job, job), eq(batchItems.position, position)))
  return item
}

/** Takes the oldest item that waits and that `channel` has not been unable to pay. Channels side by side get different ones. */
export async function takeItem(db: Database, channel: string): Promise<Item | undefined> {
  const oldest = sql`(
    SELECT ${batchItems.job}, ${batchItems.position} FROM ${batchItems}
    WHERE ${batchItems.status} = 'queued' AND NOT (${channel} = ANY(${batchItems.unable}))
    ORDER BY ${batchItems.queuedAt}, ${batchItems.job}, ${batchItems.position}
    LIMIT 1 FOR UPDATE SKIP LOCKED)`
  const [item] = await db
    .update(batchItems)
    .set({ status: 'taken', channel, attempt: sql`${batchItems.attempt} + 1` })
    .where(and(eq(batchItems.status, 'queued'), sql`(${batchItems.job}, ${batchItems.position}) = ${oldest}`))
    .returning()
  return item
}

/**
 * Stores the transfer that is to pay the item, before anybody else gets to see it. Undefined when the item has moved on:
 * then the transfer must not be given away.
 */
export async function storeSigned(
  db: Database,
  item: Item,
  signed: { innerHash: string; signedXdr: string; sealedOpening: string },
): Promise<Item | undefined> {
  const [stored] = await db
    .update(batchItems)
    .set({ status: 'signed', ...signed })
    .where(isAt(item, 'signed'))
    .returning()
  return stored
}

/**
 * Says that the item's transfer is the one to pay it, in the SQL transaction by which the sponsor becomes bound to it.
 * From here on only that transfer's own end can free the item.
 * @throws Refusal `conflict`
 */
export async function confirmItem(tx: Database, item: Item, now: Date): Promise<void> {
  const [confirmed] = await tx
    .update(batchItems)
    .set({ sentAt: sql`coalesce(${batchItems.sentAt}, ${now.toISOString()}::timestamptz)` })
    .where(isAt(item, 'paid'))
    .returning({ job: batchItems.job })
  if (!confirmed) throw new Refusal('conflict', 'the item is no longer paid by this transfer')
}
