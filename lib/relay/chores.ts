import { and, asc, inArray, lt } from 'drizzle-orm'
import { batchItems, type ItemStatus } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { failItem } from './item-ending.ts'
import { findOpenItems } from './items.ts'
import type { ItemQueue } from './queue.ts'

/** An item that has waited so long (ms) without a transfer is given up: no relay could open it, or none could pay. */
const GIVE_UP_AFTER = 86_400_000
/** More than a queue holds in its worst hour; the oldest come first. */
const MOST_ITEMS = 1_000

/** What the relays' chores work with. */
export interface RelayChores {
  database(): Promise<Database>
  queue: ItemQueue
  token: string
  now(): Date
}

/**
 * Gives up what has waited too long, whichever key it is sealed to, and sends a message for every open item of this queue
 * that has none. The message of an item that holds a channel comes before the others, which may be waiting for that very
 * channel. Resolves to how many items are open.
 */
export async function resumeItems(given: RelayChores): Promise<number> {
  const { queue, now } = given
  const db = await given.database()
  const overdue = await db
    .select()
    .from(batchItems)
    .where(
      and(
        inArray(batchItems.status, ['queued', 'taken']),
        lt(batchItems.queuedAt, new Date(now().getTime() - GIVE_UP_AFTER)),
      ),
    )
    .orderBy(asc(batchItems.queuedAt))
    .limit(MOST_ITEMS)
  const open = await findOpenItems(db, queue.relayKey, MOST_ITEMS)
  // A process without anything to send opens no queue.
  if (overdue.length > 0 || open.length > 0) await queue.open()
  for (const item of overdue) await failItem(given, item, 'no relay could pay it within a day')
  if (open.length > 0) {
    await transact(db, async (tx) => {
      await queue.send(
        tx,
        open.map((item) => ({ ...item, isHeld: holdsChannel(item) })),
      )
      for (const item of open.filter(holdsChannel)) await queue.prefer(tx, item)
    })
  }
  return open.length
}

const holdsChannel = ({ status }: { status: ItemStatus }) => status === 'taken' || status === 'signed'
