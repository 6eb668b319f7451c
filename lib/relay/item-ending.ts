import { asc, eq, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type ItemStatus } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { type Holding, releaseChannel } from './holding.ts'
import { type Item, isAt, isOpen } from './items.ts'

/** The parts of a relay that ending an item needs. */
type Ending = Pick<Holding, 'database' | 'queue' | 'now'>

/** Ends an item as paid by the transaction `hash`. Records what its channel has left, and frees the channel. */
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
  /** this channel has too little for the item, and others may have enough */
  unable?: boolean
  /** the ledger speaks against the item: all channels are tried again later, once no node can lag behind this ledger */
  doubt?: { doubtedUntil: Date; doubtedLedger: number }
  /** the hash under which its transfer failed, if it got that far */
  hash?: string
}

/**
 * Queues an item again and frees its channel, unless its stored transfer can still pay it. Resolves to whether it did.
 */
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

/** Ends an item as failed, unless its stored transfer can still pay it. Resolves to whether it did. */
export function failItem(ending: Ending, item: Item, error: string, unable = item.unable): Promise<boolean> {
  return endUnpaid(ending, item, { status: 'failed', error, unable })
}

/** Ends an item as unknown: the ledger's history no longer tells whether it was paid. Resolves to whether it did. */
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
 * Whether nothing can pay the item any more; locks the item. The sponsor calls `confirmItem` in the SQL transaction
 * that records a transfer: either that transaction is visible here, or it finds the item gone and stops.
 */
async function isFree(tx: Database, item: Item, next: ItemStatus): Promise<boolean> {
  const [held] = await tx
    .select({ innerHash: batchItems.innerHash, status: batchItems.status })
    .from(batchItems)
    .where(isAt(item, next))
    .for('update')
  if (!held) return false
  if (held.status !== 'signed' || held.innerHash === null) return true
  // The history is lost, so no later look-up can tell more.
  if (next === 'unknown') return true
  // Without a row the transfer was never sent. A transfer that was replaced by another of its number will never apply.
  const transfer = (await findTransferOfHash(tx, held.innerHash))?.transfer
  const isReplaced = transfer?.status === 'succeeded' && transfer.applied !== held.innerHash
  return !transfer || isReplaced || transfer.status === 'failed' || transfer.status === 'expired'
}

/**
 * Locks the job before one of its items ends: of two transactions that end the last two items, the second closes the
 * job.
 */
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
