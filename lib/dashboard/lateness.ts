import { and, eq, type SQL, sql } from 'drizzle-orm'
import { type BatchStatus, batches, type PayoutStatus } from '#drizzle/schema/directory.ts'
import { type JobStatus, relayJobs } from '#drizzle/schema/relay.ts'
import { type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { JOB_PROGRESSED_AT } from './jobs.ts'

/**
 * The status of an unfinished record of each type, when it last made progress, and after how many seconds without any it
 * is late. docs/alerts.yml has the same times.
 */
export const PROGRESS = {
  batch: { table: batches, unfinished: 'started', at: batches.progressedAt, lateAfterSeconds: 30 * 60 },
  job: { table: relayJobs, unfinished: 'running', at: JOB_PROGRESSED_AT, lateAfterSeconds: 10 * 60 },
  /** the longest maxTime is 330 s */
  transfer: { table: transfers, unfinished: 'open', at: transfers.createdAt, lateAfterSeconds: 6 * 60 },
} as const
export type ProgressingRecord = keyof typeof PROGRESS

/** Why an overdue transfer is still open. */
export const WHY_OVERDUE =
  'it should have settled within 6 minutes, and the Stellar RPC has not reported whether it was applied'

const limitOf = (of: ProgressingRecord, now: Date) => new Date(now.getTime() - PROGRESS[of].lateAfterSeconds * 1000)

export const isUnfinished = (of: ProgressingRecord): SQL => eq(PROGRESS[of].table.status, PROGRESS[of].unfinished)

/** The condition that a record is unfinished and late. */
export const isLate = (of: ProgressingRecord, now: Date): SQL | undefined =>
  and(isUnfinished(of), sql`${PROGRESS[of].at} < ${limitOf(of, now).toISOString()}::timestamptz`)

/** Whether a record that was read is unfinished and late. */
const wasLate = (of: ProgressingRecord, status: string, progressedAt: Date | null, now: Date) =>
  status === PROGRESS[of].unfinished && progressedAt !== null && progressedAt < limitOf(of, now)

/** A batch's status, or `stalled`. */
export const batchState = (batch: { status: BatchStatus; progressedAt: Date | null }, now: Date) =>
  wasLate('batch', batch.status, batch.progressedAt, now) ? 'stalled' : batch.status

/** A job's status, or `stalled`. */
export const jobState = (job: { status: JobStatus; progressedAt: Date }, now: Date) =>
  wasLate('job', job.status, job.progressedAt, now) ? 'stalled' : job.status

/** A transfer's status, or `overdue` if it has been open for longer than an envelope can be valid. */
export const transferState = (transfer: { status: TransferStatus; createdAt: Date }, now: Date) =>
  wasLate('transfer', transfer.status, transfer.createdAt, now) ? 'overdue' : transfer.status

/** A payout's status, or `overdue` together with its transfer. */
export function payoutState(
  { status, transfer }: { status: PayoutStatus; transfer: Parameters<typeof transferState>[0] | null },
  now: Date,
) {
  return status === 'pending' && transfer && transferState(transfer, now) === 'overdue' ? 'overdue' : status
}
