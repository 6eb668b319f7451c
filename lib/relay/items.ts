import { and, asc, eq, inArray, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type ItemStatus, relayChannels } from '#drizzle/relay-schema.ts'
import { sponsoredTransfers } from '#drizzle/schema.ts'
import { type Database, transact } from '#lib/db.ts'
import { Refusal } from '#lib/refusal.ts'

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

const isAt = ({ job, position, attempt }: Item, next: ItemStatus) =>
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

/** Ends an item whose transfer stands on the ledger under `hash`, and notes what the channel has left. */
export function payItem(db: Database, item: Item, hash: string, token: string, now: Date): Promise<void> {
  return transact(db, async (tx) => {
    await lockJob(tx, item.job)
    const ended = { status: 'paid', hash, settledAt: now, ...UNSEALED } as const
    const [paid] = await tx.update(batchItems).set(ended).where(isAt(item, 'paid')).returning({ job: batchItems.job })
    if (!paid) return
    await tx
      .update(relayChannels)
      .set({ sealedOpening: item.sealedOpening, problem: null })
      .where(and(eq(relayChannels.token, token), eq(relayChannels.address, item.channel ?? '')))
    await closeJob(tx, item.job, now)
  })
}

/** Why an item goes back into the queue: `unable` when this channel cannot pay it and others may. */
export interface Return {
  unable?: boolean
  /** the hash under which its transfer failed, if it got that far */
  hash?: string
}

/**
 * Puts an item back, for any lane, unless the transfer that it has can still pay it. Says whether it did.
 */
export function returnItem(db: Database, item: Item, { unable = false, hash }: Return = {}): Promise<boolean> {
  return transact(db, async (tx) => {
    if (!(await isFree(tx, item, 'queued'))) return false
    await tx
      .update(batchItems)
      .set({
        status: 'queued',
        channel: null,
        ...UNSIGNED,
        ...(hash !== undefined && { hash }),
        ...(unable && { unable: sql`array_append(${batchItems.unable}, ${item.channel})` }),
      })
      .where(isAt(item, 'queued'))
    return true
  })
}

/** Ends an item that cannot be paid, unless the transfer that it has still can. Says whether it did. */
export function failItem(db: Database, item: Item, error: string, now: Date): Promise<boolean> {
  return transact(db, async (tx) => {
    await lockJob(tx, item.job)
    if (!(await isFree(tx, item, 'failed'))) return false
    await tx
      .update(batchItems)
      .set({ status: 'failed', error, settledAt: now, ...UNSEALED })
      .where(isAt(item, 'failed'))
    await closeJob(tx, item.job, now)
    return true
  })
}

const UNSIGNED = { signedXdr: null, sealedOpening: null }
const UNSEALED = { sealedAmount: null, ...UNSIGNED }

/**
 * Whether nothing can pay the item any more. The sponsor confirms an item in the transaction that binds it, and here the
 * item is locked: either that transaction is seen, or it will find the item gone.
 */
async function isFree(tx: Database, item: Item, next: ItemStatus): Promise<boolean> {
  const [held] = await tx
    .select({ innerHash: batchItems.innerHash, status: batchItems.status })
    .from(batchItems)
    .where(isAt(item, next))
    .for('update')
  if (!held) return false
  if (held.status !== 'signed' || held.innerHash === null) return true
  const [transfer] = await tx
    .select({ status: sponsoredTransfers.status })
    .from(sponsoredTransfers)
    .where(eq(sponsoredTransfers.innerHash, held.innerHash))
  return !transfer || transfer.status === 'failed' || transfer.status === 'dead'
}

/** Whoever ends an item holds its job, or two that end the last two would each see the other's as open. */
async function lockJob(tx: Database, job: string): Promise<void> {
  await tx.select({ id: batchJobs.id }).from(batchJobs).where(eq(batchJobs.id, job)).for('update')
}

async function closeJob(tx: Database, job: string, now: Date): Promise<void> {
  const items = await tx
    .select({ position: batchItems.position, status: batchItems.status, error: batchItems.error })
    .from(batchItems)
    .where(eq(batchItems.job, job))
    .orderBy(asc(batchItems.position))
  if (items.some(({ status }) => status !== 'paid' && status !== 'failed')) return
  const failed = items.find(({ status }) => status === 'failed')
  await tx
    .update(batchJobs)
    .set(
      failed
        ? { status: 'failed', endedAt: now, error: `transfer ${failed.position}: ${failed.error}` }
        : { status: 'completed', endedAt: now },
    )
    .where(and(eq(batchJobs.id, job), eq(batchJobs.status, 'running')))
}
