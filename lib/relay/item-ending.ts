import { asc, eq, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type ItemStatus } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { findTransferOfHash } from '#lib/submission/transfers.ts'
import { type Holding, releaseChannel } from './holding.ts'
import { type Item, isAt, isOpen } from './items.ts'

/** What it takes to end an item. */
type Ending = Pick<Holding, 'database' | 'queue' | 'now'>

/** Ends an item whose transfer stands on the ledger under `hash`, notes what the channel has left, and frees it. */
export async function payItem(ending: Ending, item: Item, hash: string): Promise<void> {
  const now = ending.now()
  await transact(await ending.database(), async (tx) => {
    await lockJob(tx, item.job)
    const ended = { status: 'paid', hash, error: null, settledAt: now, ...UNSEALED } as const
    const [paid] = await tx.update(batchItems).set(ended).where(isAt(item, 'paid')).returning({ job: batchItems.job })
    if (!paid) return
    await releaseChannel(tx, ending, item, { sealedOpening: item.sealedOpening, problem: null })
    await closeJob(tx, item.job, now)
  })
}

/** Why an item gives its channel back. */
interface Return {
  /** this channel has not enough for it, others may have */
  unable?: boolean
  /** nothing can pay it by what the ledger says now: every channel is tried again then, but not before this ledger is past */
  doubt?: { doubtedUntil: Date; doubtedLedger: number }
  /** the hash under which its transfer failed, if it got that far */
  hash?: string
}

/** Gives an item's channel back, unless the transfer that the item has can still pay it. Says whether it did. */
export async function returnItem(
  ending: Ending,
  item: Item,
  { unable = false, doubt, hash }: Return = {},
): Promise<boolean> {
  return await transact(await ending.database(), async (tx) => {
    if (!(await isFree(tx, item, 'queued'))) return false
    await tx
      .update(batchItems)
      .set({
        status: 'queued',
        channel: null,
        ...UNSIGNED,
        ...(hash !== undefined && { hash, failures: sql`${batchItems.failures} + 1` }),
        ...(unable && { unable: sql`array_append(${batchItems.unable}, ${item.channel})` }),
        ...(doubt && { ...doubt, unable: [] }),
      })
      .where(isAt(item, 'queued'))
    await releaseChannel(tx, ending, item)
    return true
  })
}

/** Ends an item that cannot be paid, unless the transfer that it has still can pay it. Says whether it did. */
export function failItem(ending: Ending, item: Item, error: string, unable = item.unable): Promise<boolean> {
  return endUnpaid(ending, item, { status: 'failed', error, unable })
}

/** Ends an item of which history cannot tell any more whether it was paid. */
export function endUnknown(ending: Ending, item: Item, hash: string | undefined): Promise<boolean> {
  const error = 'the ledger’s history no longer tells whether it was paid'
  return endUnpaid(ending, item, { status: 'unknown', error, ...(hash !== undefined && { hash }) })
}

async function endUnpaid(
  ending: Ending,
  item: Item,
  ended: { status: 'failed' | 'unknown'; error: string; hash?: string; unable?: string[] },
): Promise<boolean> {
  const now = ending.now()
  return await transact(await ending.database(), async (tx) => {
    await lockJob(tx, item.job)
    if (!(await isFree(tx, item, ended.status))) return false
    await tx
      .update(batchItems)
      .set({ ...ended, settledAt: now, ...UNSEALED })
      .where(isAt(item, ended.status))
    await releaseChannel(tx, ending, item)
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
  // History cannot tell: no later look will.
  if (next === 'unknown') return true
  // A hash that the sponsor does not know was never recorded, and one that was replaced will never apply.
  const transfer = (await findTransferOfHash(tx, held.innerHash))?.transfer
  const isReplaced = transfer?.status === 'succeeded' && transfer.applied !== held.innerHash
  return !transfer || isReplaced || transfer.status === 'failed' || transfer.status === 'expired'
}

/** A transaction that ends an item locks its job first: two that end the last two items see each other's. */
async function lockJob(tx: Database, job: string): Promise<void> {
  await tx.select({ id: batchJobs.id }).from(batchJobs).where(eq(batchJobs.id, job)).for('update')
}

async function closeJob(tx: Database, job: string, now: Date): Promise<void> {
  const items = await tx
    .select({ position: batchItems.position, status: batchItems.status, error: batchItems.error })
    .from(batchItems)
    .where(eq(batchItems.job, job))
    .orderBy(asc(batchItems.position))
  if (items.some(isOpen)) return
  const unpaid = items.find(({ status }) => status !== 'paid')
  await tx
    .update(batchJobs)
    .set(
      unpaid
        ? { status: 'failed', endedAt: now, error: `transfer ${unpaid.position}: ${unpaid.error}` }
        : { status: 'completed', endedAt: now },
    )
    .where(sql`${batchJobs.id} = ${job} AND ${batchJobs.status} = 'running'`)
}
