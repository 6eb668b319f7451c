import { and, asc, eq, inArray, sql } from 'drizzle-orm'
import { batchItems, type ItemStatus } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { statusesBefore } from '#lib/db/moves.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import type { ItemId } from './sealing.ts'

/** An item's row. `attempt` is a fencing token: a worker of an earlier attempt can no longer change the item. */
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

/** The condition that the item is still in this attempt, and in a status from which it may move to `next`. */
export const isAt = (item: Item, next: ItemStatus) =>
  and(isItem(item), eq(batchItems.attempt, item.attempt), inArray(batchItems.status, statusesBefore(ITEM_MOVES, next)))

export async function findItem(db: Database, id: ItemId): Promise<Item | undefined> {
  const [item] = await db.select().from(batchItems).where(isItem(id))
  return item
}

/** The order in which items are paid. */
export const oldestFirst = [asc(batchItems.queuedAt), asc(batchItems.job), asc(batchItems.position)]

/**
 * Stores the signed transfer that is to pay the item, before it is sent. Undefined if the item has moved on: then the
 * transfer must not be sent.
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
 * Confirms that the stored transfer is still to pay the item, in the SQL transaction in which the sponsor records that
 * transfer. From here on only the end of the transfer can free the item.
 * @throws Refusal `conflict` if the item has moved on
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
