import { and, asc, eq, inArray, sql } from 'drizzle-orm'
import { batchItems, type ItemStatus } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { Refusal } from '#lib/http/refusal.ts'
import type { ItemId } from './sealing.ts'

/** An item as a worker handles it. `attempt` fences it: what an earlier attempt has begun has no more say. */
export type Item = typeof batchItems.$inferSelect

/** Every legal move. `paid`, `failed` and `unknown` are final. */
export const ITEM_MOVES = {
  queued: ['taken', 'failed'],
  taken: ['signed', 'queued', 'failed'],
  signed: ['paid', 'queued', 'failed', 'unknown'],
  paid: [],
  failed: [],
  unknown: [],
} as const satisfies Record<ItemStatus, readonly ItemStatus[]>

const STATUSES = Object.entries(ITEM_MOVES) as [ItemStatus, readonly ItemStatus[]][]

/** The statuses of an item that is still to be paid. */
export const OPEN_ITEM = STATUSES.filter(([, moves]) => moves.length > 0).map(([status]) => status)

export const isOpen = ({ status }: Pick<Item, 'status'>): boolean => OPEN_ITEM.includes(status)

export const isItem = ({ job, position }: ItemId) => and(eq(batchItems.job, job), eq(batchItems.position, position))

/** Whether the item is where `next` may follow, and still in the same attempt. */
export const isAt = (item: Item, next: ItemStatus) =>
  and(isItem(item), eq(batchItems.attempt, item.attempt), inArray(batchItems.status, statusesBefore(ITEM_MOVES, next)))

export async function findItem(db: Database, id: ItemId): Promise<Item | undefined> {
  const [item] = await db.select().from(batchItems).where(isItem(id))
  return item
}

/** The order in which items are paid. */
export const oldestFirst = [asc(batchItems.queuedAt), asc(batchItems.job), asc(batchItems.position)]

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
    .set({
      sentAt: sql`coalesce(${batchItems.sentAt}, ${now.toISOString()}::timestamptz)`,
      doubtedUntil: null,
      doubtedLedger: null,
    })
    .where(isAt(item, 'paid'))
    .returning({ job: batchItems.job })
  if (!confirmed) throw new Refusal('conflict', 'the item is no longer paid by this transfer')
}
