import { and, asc, inArray, lt } from 'drizzle-orm'
import { batchItems, type ItemStatus } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { findTransferOfHash } from '#lib/submission/transfers.ts'
import { endUnknown, failItem, payItem } from './item-ending.ts'
import { findOpenItems, findSignedItems, type Item } from './items.ts'
import type { ItemQueue } from './queue.ts'

/** An item that has waited so long (ms) without a transfer is given up: no relay could open it, or none could pay. */
const GIVE_UP_AFTER = 86_400_000
/** More than a queue holds in its worst hour; the oldest come first. */
const MOST_ITEMS = 1_000

/** What the relays' chores work with. */
export interface RelayChores {
  database(): Promise<Database>
  queue: ItemQueue
  now(): Date
}

/**
 * Ends what no relay will end: a key may be lost, with the items that are sealed to it, and their channels are needed.
 * Sends a message for every open item of this queue that has none. The message of an item that holds a channel comes
 * before the others, which may be waiting for that very channel. Resolves to how many items are open.
 */
export async function resumeItems(given: RelayChores): Promise<number> {
  const { queue } = given
  const db = await given.database()
  const overdue = await findOverdue(db, giveUpBefore(given))
  const signed = await findSignedItems(db)
  const open = await findOpenItems(db, queue.relayKey, MOST_ITEMS)
  // A process without anything to send opens no queue.
  if (overdue.length + signed.length + open.length > 0) await queue.open()
  for (const item of overdue) await failItem(given, item, TOO_LATE)
  for (const item of signed) await endSigned(given, item)
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

const TOO_LATE = 'no relay could pay it within a day'
const giveUpBefore = ({ now }: RelayChores) => new Date(now().getTime() - GIVE_UP_AFTER)

/** Unsigned items of any key that have waited too long. */
function findOverdue(db: Database, before: Date): Promise<Item[]> {
  return db
    .select()
    .from(batchItems)
    .where(and(inArray(batchItems.status, ['queued', 'taken']), lt(batchItems.queuedAt, before)))
    .orderBy(asc(batchItems.queuedAt))
    .limit(MOST_ITEMS)
}

/** A signed item ends as its transfer has. One whose transfer cannot pay it waits for a relay that has its key. */
async function endSigned(given: RelayChores, item: Item): Promise<void> {
  const { innerHash } = item
  if (innerHash === null) return
  const transfer = (await findTransferOfHash(await given.database(), innerHash))?.transfer
  if (transfer?.status === 'succeeded' && transfer.applied === innerHash) {
    await payItem(given, item, transfer.hash ?? innerHash)
  } else if (transfer?.status === 'unknown') await endUnknown(given, item, undefined)
  else if (item.queuedAt < giveUpBefore(given)) await failItem(given, item, TOO_LATE)
}

const holdsChannel = ({ status }: { status: ItemStatus }) => status === 'taken' || status === 'signed'
