import type { BatchStatus, PayoutStatus } from '#drizzle/schema/directory.ts'
import type { JobStatus } from '#drizzle/schema/relay.ts'
import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import { BATCH_STALLED_AFTER_SECONDS, JOB_STALLED_AFTER_SECONDS, TRANSFER_OVERDUE_AFTER_SECONDS } from './conditions.ts'

/** Why an overdue transfer is still open. */
export const WHY_OVERDUE =
  'it should have settled within 6 minutes, and the Stellar RPC has not reported whether it was applied'

const before = (now: Date, seconds: number) => new Date(now.getTime() - seconds * 1000)

/** A batch or job whose last progress is before this has stalled; a transfer recorded before this is overdue. */
export const batchLimit = (now: Date) => before(now, BATCH_STALLED_AFTER_SECONDS)
export const jobLimit = (now: Date) => before(now, JOB_STALLED_AFTER_SECONDS)
export const transferLimit = (now: Date) => before(now, TRANSFER_OVERDUE_AFTER_SECONDS)

/** A batch's status, or `stalled`. */
export function batchState(batch: { status: BatchStatus; progressedAt: Date | null }, now: Date) {
  const { status, progressedAt } = batch
  return status === 'started' && progressedAt !== null && progressedAt < batchLimit(now) ? 'stalled' : status
}

/** A job's status, or `stalled`, by its last progress. */
export function jobState(job: { status: JobStatus; progressedAt: Date }, now: Date) {
  return job.status === 'running' && job.progressedAt < jobLimit(now) ? 'stalled' : job.status
}

/** A transfer's status, or `overdue` if it has been open for longer than an envelope can be valid. */
export function transferState({ status, createdAt }: { status: TransferStatus; createdAt: Date }, now: Date) {
  return status === 'open' && createdAt < transferLimit(now) ? 'overdue' : status
}

/** A payout's status, or `overdue` together with its transfer. */
export function payoutState(
  payout: { status: PayoutStatus; transfer: Parameters<typeof transferState>[0] | null },
  now: Date,
) {
  const { status, transfer } = payout
  return status === 'pending' && transfer && transferState(transfer, now) === 'overdue' ? 'overdue' : status
}
