import type { BatchStatus, PayoutStatus } from '#drizzle/schema/directory.ts'
import type { JobStatus } from '#drizzle/schema/relay.ts'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'

/** A batch of which nothing has moved for so long stands still (ms). */
const BATCH_STILL_AFTER_MS = 30 * 60_000

/** A job of which no item has moved for so long stands still (ms). */
const JOB_STILL_AFTER_MS = 10 * 60_000

/** The longest maxTime of a transfer is 330 s: an older one should have been decided (ms). */
const TRANSFER_OVERDUE_AFTER_MS = 6 * 60_000

/** The reason for which an overdue transfer waits. */
export const WHY_OVERDUE =
  'it should have been settled within 6 minutes, and the Stellar RPC has not said whether it was paid'

/**
 * A batch or job that last moved before its limit stands still. A transfer that was recorded before its limit is
 * overdue.
 */
export const batchLimit = (now: Date) => new Date(now.getTime() - BATCH_STILL_AFTER_MS)
export const jobLimit = (now: Date) => new Date(now.getTime() - JOB_STILL_AFTER_MS)
export const transferLimit = (now: Date) => new Date(now.getTime() - TRANSFER_OVERDUE_AFTER_MS)

/** How a batch stands: its status, unless it is under way and stands still. */
export function batchState(batch: { status: BatchStatus; progressedAt: Date | null }, now: Date) {
  const { status, progressedAt } = batch
  return status === 'started' && progressedAt !== null && progressedAt < batchLimit(now) ? 'still' : status
}

/** How a job stands, by the last move of any of its items. */
export function jobState(job: { status: JobStatus; progressedAt: Date }, now: Date) {
  return job.status === 'running' && job.progressedAt < jobLimit(now) ? 'still' : job.status
}

/** How a transfer stands: open for longer than one can be valid, it is overdue. */
export function transferState({ status, createdAt }: { status: TransferStatus; createdAt: Date }, now: Date) {
  return status === 'open' && createdAt < transferLimit(now) ? 'overdue' : status
}

/** How a payout stands: it waits for its transfer, and is overdue with it. */
export function payoutState(
  payout: { status: PayoutStatus; transfer: Parameters<typeof transferState>[0] | null },
  now: Date,
) {
  const { status, transfer } = payout
  return status === 'pending' && transfer && transferState(transfer, now) === 'overdue' ? 'overdue' : status
}
