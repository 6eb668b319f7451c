import { and, eq, inArray, lt, not, or, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type ItemStatus, relayChannels } from '#drizzle/schema/relay.ts'
import { transact } from '#lib/db/connection.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { isSuspendedBy } from './channel-state.ts'
import { end } from './item.ts'
import { type Item, OPEN_ITEM, oldestFirst } from './item-row.ts'
import type { RelayStore } from './relay.ts'

/** An item that has waited this long fails: no relay could decrypt its amount, or no channel could pay it. */
const ITEM_FAILS_AFTER_MS = 24 * 60 * 60_000
/** The maximum number of items per round, oldest first: more than a queue has in its worst hour. */
const MAX_ITEMS = 1_000

/**
 * Ends the items that no relay can end because their key is lost: they would hold their channels forever. An item that a
 * channel may have paid waits, however long that takes: it must not be called failed, and paid again. Then sends a
 * message for every open item of this queue that has none. The message of an item that holds a channel gets priority,
 * because other items may be waiting for that channel. Resolves to the number of open items in the queue.
 */
export async function resumeItems(store: RelayStore): Promise<number> {
  const { queue } = store
  const db = await store.database()
  const isLate = lt(batchItems.queuedAt, giveUpBefore(store))
  const isOverdue = and(inArray(batchItems.status, ['queued', 'taken']), isLate, not(mayBePaid(store)))
  // Reads items of every key: there may be no relay left with their key.
  const overdue = await db
    .select()
    .from(batchItems)
    .where(isOverdue)
    .orderBy(...oldestFirst)
    .limit(MAX_ITEMS)
  const isSigned = eq(batchItems.status, 'signed')
  // No limit is needed: each channel has at most one signed item.
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
        // No worker may take these, and there may be many of them.
        or(eq(batchItems.status, 'signed'), not(isSuspendedBy(store.token))),
      ),
    )
    .orderBy(...oldestFirst)
    .limit(MAX_ITEMS)
  // Opening the queue starts pg-boss, which a process without items does not need.
  if (overdue.length + signed.length + open.length > 0) await queue.open()
  for (const item of overdue) await endOverdue(store, item)
  for (const item of signed) await endSigned(store, item)
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

/**
 * The condition for items that the ledger may show as paid: a channel has moved since they were queued, or was not compared
 * with the ledger since they are overdue, as after a restore from a backup.
 */
const mayBePaid = ({ token }: RelayStore) => {
  const overdueAt = sql`${batchItems.queuedAt} + make_interval(secs => ${ITEM_FAILS_AFTER_MS / 1000})`
  const isCompared = sql`coalesce(channel.compared_at >= ${overdueAt}, false)`
  return sql`(${isSuspendedBy(token)} OR EXISTS (SELECT 1 FROM ${relayChannels} AS channel
    WHERE channel.token = ${token} AND NOT ${isCompared}))`
}

/** Ends an overdue item, unless a channel has moved in the meantime. */
async function endOverdue(store: RelayStore, item: Item): Promise<void> {
  await end(store, item, { status: 'failed', error: TOO_LATE }, not(mayBePaid(store)))
}

const TOO_LATE = 'no relay could pay it within a day'
const giveUpBefore = ({ now }: RelayStore) => new Date(now().getTime() - ITEM_FAILS_AFTER_MS)

/** Ends a signed item as its transfer ended. An item that its transfer cannot pay waits a day for a relay with its key. */
async function endSigned(store: RelayStore, item: Item): Promise<void> {
  const { innerHash } = item
  if (innerHash === null) return
  const transfer = (await findTransferOfHash(await store.database(), innerHash))?.transfer
  if (transfer?.status === 'succeeded' && transfer.applied === innerHash) {
    await end(store, item, { status: 'paid', hash: transfer.hash ?? innerHash })
  } else if (transfer?.status === 'unknown') await end(store, item, { status: 'unknown' })
  else if (item.queuedAt < giveUpBefore(store)) await endOverdue(store, item)
}

const holdsChannel = ({ status }: { status: ItemStatus }) => status === 'taken' || status === 'signed'
