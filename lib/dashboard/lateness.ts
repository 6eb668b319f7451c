import { and, eq, type SQL, sql } from 'drizzle-orm'
import { type BatchStatus, batches, type PayoutStatus } from '#drizzle/schema/directory.ts'
import { type JobStatus, relayJobs } from '#drizzle/schema/relay.ts'
import { type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { JOB_PROGRESSED_AT } from './jobs.ts'

/** For how many seconds an unfinished record may make no progress before it is late. docs/alerts.yml has the same times. */
export const LATE_AFTER = {
  batch: 30 * 60,
  job: 10 * 60,
  /** the longest maxTime is 330 s */
  transfer: 6 * 60,
} as const
export type ProgressingRecord = keyof typeof LATE_AFTER

/** Why an overdue transfer is still open. */
export const WHY_OVERDUE =
  'it should have settled within 6 minutes, and the Stellar RPC has not reported whether it was applied'

/** Which records are unfinished, and when each last made progress. */
export const UNFINISHED = {
  batch: { table: batches, isUnfinished: eq(batches.status, 'started'), progressedAt: batches.progressedAt },
  job: { table: relayJobs, isUnfinished: eq(relayJobs.status, 'running'), progressedAt: JOB_PROGRESSED_AT },
  transfer: { table: transfers, isUnfinished: eq(transfers.status, 'open'), progressedAt: transfers.createdAt },
} as const satisfies Record<ProgressingRecord, object>

const limitOf = (record: ProgressingRecord, now: Date) => new Date(now.getTime() - LATE_AFTER[record] * 1000)

/** The condition that a record is unfinished and late. */
export function isLate(record: ProgressingRecord, now: Date): SQL | undefined {
  const { isUnfinished, progressedAt } = UNFINISHED[record]
  return and(isUnfinished, sql`${progressedAt} < ${limitOf(record, now).toISOString()}::timestamptz`)
}

/** A batch in progress whose last progress is before this has stalled. */
export const batchLimit = (now: Date) => limitOf('batch', now)

/** A batch's status, or `stalled`. */
export function batchState(batch: { status: BatchStatus; progressedAt: Date | null }, now: Date) {
  const { status, progressedAt } = batch
  return status === 'started' && progressedAt !== null && progressedAt < batchLimit(now) ? 'stalled' : status
}

/** A job's status, or `stalled`, by its last progress. */
export function jobState(job: { status: JobStatus; progressedAt: Date }, now: Date) {
  return job.status === 'running' && job.progressedAt < limitOf('job', now) ? 'stalled' : job.status
}

/** A transfer's status, or `overdue` if it has been open for longer than an envelope can be valid. */
export function transferState({ status, createdAt }: { status: TransferStatus; createdAt: Date }, now: Date) {
  return status === 'open' && createdAt < limitOf('transfer', now) ? 'overdue' : status
}

/** A payout's status, or `overdue` together with its transfer. */
export function payoutState(
  payout: { status: PayoutStatus; transfer: Parameters<typeof transferState>[0] | null },
  now: Date,
) {
  const { status, transfer } = payout
  return status === 'pending' && transfer && transferState(transfer, now) === 'overdue' ? 'overdue' : status
}
