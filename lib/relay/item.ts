import { and, asc, eq, inArray, notInArray, type SQL, sql } from 'drizzle-orm'
import { batchItems, batchJobs, type ItemStatus } from '#drizzle/schema/relay.ts'
import { envelopes } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { failPayout } from '#lib/directory/payouts/failure.ts'
import { releaseCount } from '#lib/transfers/quota.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { acquire, type NotAcquired, release } from './channel.ts'
import { isSuspended } from './channel-state.ts'
import { ItemError, type RunErrorCode } from './item-error.ts'
import { type HeldItem, type Item, type ItemId, isItem, isOpen, mayMove, OPEN_ITEM } from './item-row.ts'
import type { Relay, RelayStore } from './relay.ts'
import { claimSequence } from './sequence.ts'

/** Why a worker gets no item. `doubted`: its pause is not over. `suspended`: a channel that has moved may have paid it. */
export type NotTaken = 'ended' | 'doubted' | 'suspended' | NotAcquired

/**
 * Gives the item to a worker under a new attempt, in one SQL transaction: with the channel that it holds, else with a
 * free one. Never waits for a channel. An unsigned item on a channel whose seed this relay lacks gives that channel
 * back; a signed item needs no seed.
 */
export async function take(relay: Relay, id: ItemId): Promise<HeldItem | NotTaken> {
  const addresses = relay.channels.map(({ address }) => address)
  return await transact(await relay.database(), async (tx) => {
    const [row] = await tx
      .select({ item: batchItems, isDoubted: sql<boolean>`coalesce(${batchItems.doubtedUntil} > ${CLOCK}, false)` })
      .from(batchItems)
      .where(isItem(id))
      .for('update')
    if (!row || !isOpen(row.item)) return 'ended'
    const { item, isDoubted } = row
    if (item.status === 'queued' && isDoubted) return 'doubted'
    const mayHaveBeenPaid = item.status !== 'signed' && (await isSuspended(tx, relay.token, item))
    const isOwn = item.status === 'taken' && !mayHaveBeenPaid && addresses.includes(item.channel ?? '')
    const keeps = item.status === 'signed' || isOwn
    if (item.status === 'taken' && !keeps) await moveToQueue(tx, relay, item, {})
    if (mayHaveBeenPaid) return 'suspended'
    const acquired = keeps ? { channel: item.channel ?? '' } : await acquire(tx, relay, item)
    if (typeof acquired === 'string') return acquired
    const { channel } = acquired
    const [taken] = await tx
      .update(batchItems)
      .set({ status: item.status === 'signed' ? 'signed' : 'taken', channel, attempt: sql`${batchItems.attempt} + 1` })
      .where(isItem(id))
      .returning()
    if (!taken) throw new Error('the update of a locked item returned no row')
    return { ...taken, channel }
  })
}

/**
 * Stores the signed transfer that is to pay the item, and its sequence number, before it is submitted.
 * @throws ItemError `item-gone`, `item-suspended`, `channel-unfit`: the transfer must not be submitted
 */
export async function storeSigned(
  relay: Pick<Relay, 'database' | 'token'>,
  item: HeldItem,
  signed: { innerHash: string; signedXdr: string; sealedOpening: string | null; sequenceNumber: bigint },
): Promise<HeldItem> {
  const { sequenceNumber, ...columns } = signed
  return await transact(await relay.database(), async (tx) => {
    const [stored] = await tx
      .update(batchItems)
      .set({ status: 'signed', ...columns })
      .where(mayMove(item, 'signed'))
      .returning()
    if (!stored) throw new ItemError('item-gone', 'another worker has the item')
    if (await isSuspended(tx, relay.token, item))
      throw new ItemError('item-suspended', 'a moved channel may have paid it')
    await claimSequence(tx, relay.token, { address: item.channel, sequenceNumber, mayBeFirst: false })
    return { ...stored, channel: item.channel }
  })
}

/**
 * Confirms that the stored transfer is still to pay the item, in the SQL transaction that records the transfer. From
 * then on only the end of the transfer frees the item.
 * @throws ItemError `item-gone`
 */
export async function confirmItem(tx: Database, item: Item): Promise<void> {
  const [confirmed] = await tx
    .update(batchItems)
    .set({ sentAt: sql`coalesce(${batchItems.sentAt}, ${CLOCK})`, doubtedUntil: null, doubtedLedger: null })
    .where(mayMove(item, 'paid'))
    .returning({ job: batchItems.job })
  if (!confirmed) throw new ItemError('item-gone', 'another transfer pays the item')
}

/** Why an item returns to the queue. */
export type RequeueReason =
  /** another worker may get further */
  | { because: 'handed-over' | 'channel-unfit' | 'transfer-expired' | 'balance-stale' }
  /** the channel has too little for it: it is not tried again on that channel */
  | { because: 'balance-short' }
  /** every channel is tried again after a pause, once no node can lag behind this ledger */
  | { because: 'doubted'; ledger: number; pauseSeconds: number }
  /** another transfer may pay its payout: it is checked again after a pause */
  | { because: 'payout-busy'; pauseSeconds: number }
  /** its transfer failed on the ledger under this hash */
  | { because: 'transfer-failed'; hash: string }

/** Queues an item again and releases its channel. False if its stored transfer may still pay it, or it has moved on. */
export async function requeue(store: RelayStore, item: Item, reason: RequeueReason): Promise<boolean> {
  return await transact(await store.database(), async (tx) => {
    if (!(await lockUnpaid(tx, item, 'queued'))) return false
    await moveToQueue(tx, store, item, columnsOf(item, reason))
    return true
  })
}

function columnsOf(item: Item, reason: RequeueReason) {
  switch (reason.because) {
    case 'balance-short':
      return { unable: sql`array_append(${batchItems.unable}, ${item.channel})` }
    case 'doubted':
      return {
        unable: [],
        doubtedLedger: reason.ledger,
        doubtedUntil: sql`${CLOCK} + make_interval(secs => ${reason.pauseSeconds})`,
      }
    case 'payout-busy':
      return { doubtedUntil: sql`${CLOCK} + make_interval(secs => ${reason.pauseSeconds})` }
    case 'transfer-failed':
      return { hash: reason.hash, failures: sql`${batchItems.failures} + 1` }
    default:
      return {}
  }
}

async function moveToQueue(
  tx: Database,
  store: RelayStore,
  item: Item,
  columns: ReturnType<typeof columnsOf>,
): Promise<void> {
  await tx
    .update(batchItems)
    .set({ status: 'queued', channel: null, submitted: WAS_SUBMITTED, ...UNSIGNED, ...columns })
    .where(mayMove(item, 'queued'))
  await release(tx, store, item)
}

/** How an item ends. */
export type Ending =
  | { status: 'paid'; hash: string; innerHash?: string }
  | { status: 'failed'; error: string; unable?: string[] }
  | { status: 'unknown'; hash?: string }
  /** the payout of a run was canceled, or paid by another transfer */
  | { status: 'skipped' }

/**
 * Ends an item, releases its channel and closes its job with the last item, in one SQL transaction. False if it has
 * moved on, or, for an ending other than `paid`, if its stored transfer may still pay it.
 * @param condition must hold for the item's row, which is locked
 */
export async function end(store: RelayStore, item: Item, ending: Ending, condition?: SQL): Promise<boolean> {
  return await transact(await store.database(), (tx) => endWithin(tx, store, item, ending, condition))
}

/** `end` in the caller's SQL transaction, which must not hold locks of other items or of channels. */
export async function endWithin(
  tx: Database,
  store: RelayStore,
  item: Item,
  ending: Ending,
  condition?: SQL,
): Promise<boolean> {
  // Of two transactions that end the last two items, the second one closes the job.
  await tx.select({ id: batchJobs.id }).from(batchJobs).where(eq(batchJobs.id, item.job)).for('update')
  const isPaid = ending.status === 'paid'
  if (!isPaid && !(await lockUnpaid(tx, item, ending.status, condition))) return false
  const now = store.now()
  const error = 'error' in ending ? ending.error : ending.status === 'unknown' ? HISTORY_LOST : null
  const [ended] = await tx
    .update(batchItems)
    .set({ ...ending, error, submitted: isPaid || WAS_SUBMITTED, settledAt: now, sealedAmount: null, ...UNSIGNED })
    .where(mayMove(item, ending.status))
    .returning({ job: batchItems.job })
  if (!ended) return false
  // An invalid manifest says nothing about the payout.
  if (ending.status === 'failed' && item.payout !== null && ending.error !== MANIFEST_INVALID) {
    await failPayout({ db: tx, now }, { id: item.payout, error: ending.error })
  }
  await release(tx, store, item, isPaid && item.sealedOpening !== null ? item.sealedOpening : undefined)
  await closeJob(tx, item.job, now)
  return true
}

const CLOCK = sql`clock_timestamp()`
const MANIFEST_INVALID = 'manifest-invalid' satisfies RunErrorCode
/** Whether an envelope of the item has been submitted so far. */
const WAS_SUBMITTED = sql<boolean>`${batchItems.submitted} or exists (select 1 from ${envelopes}
  where ${envelopes.innerHash} = ${batchItems.innerHash} and ${envelopes.firstSentAt} is not null)`
const UNSIGNED = { signedXdr: null, sealedOpening: null }
const HISTORY_LOST = 'the ledger’s history no longer shows whether it was paid'

/**
 * Locks the item; true if nothing can pay it any more. `confirmItem` runs in the SQL transaction that records a
 * transfer: either that transaction is visible here, or it finds that the item has moved on and stops.
 */
async function lockUnpaid(tx: Database, item: Item, to: ItemStatus, condition?: SQL): Promise<boolean> {
  const [locked] = await tx
    .select({ innerHash: batchItems.innerHash, status: batchItems.status })
    .from(batchItems)
    .where(and(mayMove(item, to), condition))
    .for('update')
  if (!locked) return false
  if (locked.status !== 'signed' || locked.innerHash === null) return true
  // The history is lost, so another lookup would not tell more.
  if (to === 'unknown') return true
  // Without a row, the transfer was never submitted. If another transfer succeeded in its place, it never applies.
  const transfer = (await findTransferOfHash(tx, locked.innerHash))?.transfer
  const isReplaced = transfer?.status === 'succeeded' && transfer.applied !== locked.innerHash
  return !transfer || isReplaced || transfer.status === 'failed' || transfer.status === 'expired'
}

async function closeJob(tx: Database, job: string, now: Date): Promise<void> {
  const ofJob = eq(batchItems.job, job)
  // An item that ends must not read all others: a run may have 50,000.
  const [open] = await tx
    .select({ position: batchItems.position })
    .from(batchItems)
    .where(and(ofJob, inArray(batchItems.status, OPEN_ITEM)))
    .limit(1)
  if (open) return
  const [unpaid] = await tx
    .select({ position: batchItems.position, error: batchItems.error })
    .from(batchItems)
    .where(and(ofJob, notInArray(batchItems.status, ['paid', 'skipped'])))
    .orderBy(asc(batchItems.position))
    .limit(1)
  const error = unpaid && `transfer ${unpaid.position}: ${unpaid.error}`
  const [closed] = await tx
    .update(batchJobs)
    .set(error ? { status: 'failed', endedAt: now, error } : { status: 'completed', endedAt: now })
    .where(and(eq(batchJobs.id, job), eq(batchJobs.status, 'running')))
    .returning({ account: batchJobs.userSub, day: batchJobs.quotaDay })
  if (!closed || closed.day === null) return
  const { account, day } = closed
  // A run has used the quota for all its items when it was queued.
  const count = await tx.$count(batchItems, and(ofJob, eq(batchItems.submitted, false)))
  await releaseCount(tx, { account, day, count })
}
