import { and, asc, eq, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type ItemStatus, relayChannels } from '#drizzle/schema/relay.ts'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { type Item, isAt } from './items.ts'

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
