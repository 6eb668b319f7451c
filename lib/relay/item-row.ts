import { and, asc, eq, type SQL, sql } from 'drizzle-orm'
import { batchItems, type ItemStatus } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'

/** Names an item: the job, and the position in its amounts from 0. */
export interface ItemId {
  job: string
  position: number
}

/** An item's row. `attempt` is a fencing token: a worker of an earlier attempt can no longer change the item. */
export type Item = typeof batchItems.$inferSelect

/** An item and the channel that it holds. */
export type HeldItem = Item & { channel: string }

/** Every legal move. Only releasing a channel after a restore pays an item that is `queued`. */
export const ITEM_MOVES = {
  queued: ['taken', 'paid', 'failed', 'skipped'],
  taken: ['signed', 'queued', 'failed', 'skipped'],
  signed: ['paid', 'queued', 'failed', 'unknown', 'skipped'],
  paid: [],
  failed: [],
  unknown: [],
  skipped: [],
} as const satisfies Record<ItemStatus, readonly ItemStatus[]>

const STATUSES = Object.entries(ITEM_MOVES) as [ItemStatus, readonly ItemStatus[]][]

/** The statuses of an item that has not ended. */
export const OPEN_ITEM = STATUSES.filter(([, moves]) => moves.length > 0).map(([status]) => status)

export const isOpen = ({ status }: Pick<Item, 'status'>): boolean => OPEN_ITEM.includes(status)

export const isItem = ({ job, position }: ItemId) => and(eq(batchItems.job, job), eq(batchItems.position, position))

/** The condition under which a move applies: same attempt, same status, and the table allows it. */
export function mayMove(item: Item, to: ItemStatus): SQL | undefined {
  const moves: readonly ItemStatus[] = ITEM_MOVES[item.status]
  const isSame = and(isItem(item), eq(batchItems.attempt, item.attempt), eq(batchItems.status, item.status))
  return moves.includes(to) ? isSame : sql`false`
}

/** The order in which items are paid. */
export const oldestFirst = [asc(batchItems.queuedAt), asc(batchItems.job), asc(batchItems.position)]

export async function findItem(db: Database, id: ItemId): Promise<Item | undefined> {
  const [item] = await db.select().from(batchItems).where(isItem(id))
  return item
}
