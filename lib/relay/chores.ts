import { and, eq, inArray, lt } from 'drizzle-orm'
import { batchItems, batchJobs, type ItemStatus } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { findTransferOfHash } from '#lib/submission/transfers.ts'
import { endUnknown, failItem, payItem } from './item-ending.ts'
import { type Item, OPEN_ITEM, oldestFirst } from './items.ts'
import type { ItemQueue } from './queue.ts'

/** An item that has waited so long (ms) without a transfer is given up: no relay could open it, or none could pay. */
const GIVE_UP_AFTER = 86_400_000
/** More than a queue holds in its worst hour; the oldest come first. */
const MOST_ITEMS = 1_000

/** What the relays' chores work with. */
interface RelayChores {
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
  const isOverdue = and(inArray(batchItems.status, ['queued', 'taken']), lt(batchItems.queuedAt, giveUpBefore(given)))
  // Of any key: no relay may be left that has it.
  const overdue = await db
    .select()
    .from(batchItems)
    .where(isOverdue)
    .orderBy(...oldestFirst)
    .limit(MOST_ITEMS)
  const isSigned = eq(batchItems.status, 'signed')
  // At most one for each channel.
  const signed = await db
    .select()
    .from(batchItems)
    .where(isSigned)
    .orderBy(...oldestFirst)
  const open = await db
    .select({ job: batchItems.job, position: batchItems.position, status: batchItems.status })
    .from(batchItems)
    .innerJoin(batchJobs, eq(batchJobs.id, batchItems.job))
    .where(
      and(
        eq(batchJobs.relayKey, queue.relayKey),
        eq(batchJobs.status, 'running'),
        inArray(batchItems.status, OPEN_ITEM),
      ),
    )
    .orderBy(...oldestFirst)
    .limit(MOST_ITEMS)
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
