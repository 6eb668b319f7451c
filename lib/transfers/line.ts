import { and, eq, inArray, isNotNull, isNull, notInArray, type SQL, sql } from 'drizzle-orm'
import { batches } from '#drizzle/schema/directory.ts'
import { type LineOutcome, relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { envelopes, type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { RELAY, recordAudit } from '#lib/db/audit-log.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeLineError, type LineErrorCode } from './line-error.ts'
import { type RunClaim, releaseCounts } from './quota.ts'

/** Names a line of a job or of a run: the job, and the position in it from 0. */
export interface LineId {
  job: string
  position: number
}

/** A line's row. */
export type Line = typeof relayLines.$inferSelect

export const isLine = ({ job, position }: LineId) => and(eq(relayLines.job, job), eq(relayLines.position, position))

/** The condition for lines that have not ended. */
export const IS_OPEN_LINE = isNull(relayLines.outcome)

/** The condition for transfers that may pay a line, or have paid it. */
const MAY_PAY = inArray(transfers.status, ['open', 'succeeded', 'unknown'])

const PAYS_LINE = sql`${transfers.lineJob} = ${relayLines.job} and ${transfers.linePosition} = ${relayLines.position}`

/** The condition for lines that a transfer may pay, or has paid. */
export const HAS_LIVE_TRANSFER: SQL<boolean> = sql`exists (select from ${transfers} where ${PAYS_LINE} and ${MAY_PAY})`

/**
 * Locks a line for a transfer that is to pay it, or for its end without one. Undefined if it has ended, or if a transfer may pay
 * it or has paid it: only that transfer ends it then.
 */
export async function lockLine(tx: Database, id: LineId, condition?: SQL): Promise<Line | undefined> {
  const line = await lockOpenLine(tx, id, condition)
  if (!line) return undefined
  const live = and(eq(transfers.lineJob, id.job), eq(transfers.linePosition, id.position), MAY_PAY)
  return (await tx.$count(transfers, live)) > 0 ? undefined : line
}

async function lockOpenLine(tx: Database, id: LineId, condition?: SQL): Promise<Line | undefined> {
  const isIt = and(isLine(id), IS_OPEN_LINE, condition)
  return (await tx.select().from(relayLines).where(isIt).for('no key update'))[0]
}

/** The line that a transfer pays, if it pays one. */
const lineOf = ({ lineJob: job, linePosition: position }: Transfer): LineId | undefined =>
  job !== null && position !== null ? { job, position } : undefined

/** A line fails when this many of its transfers have failed on the ledger. Expired transfers do not count. */
const MAX_FAILURES = 3

/**
 * Gives a line the outcome of its transfer, in the SQL transaction that settles that. A transfer that did not pay it leaves it to
 * the next one, until three have failed on the ledger. Resolves to whether the line is waiting again.
 */
export async function settleLine(tx: Database, transfer: Transfer, now: Date): Promise<boolean> {
  const id = lineOf(transfer)
  if (!id) return false
  const { status, hash, applied } = transfer
  const line = await lockOpenLine(tx, id)
  if (!line) return false
  if (status === 'succeeded') await writeOutcome(tx, id, { outcome: 'paid', hash: hash ?? applied }, now)
  else if (status === 'unknown') await writeOutcome(tx, id, { outcome: 'unknown', error: 'history-lost' }, now)
  else {
    const failures = line.failures + (status === 'failed' ? 1 : 0)
    const failed = { failures, ...(status === 'failed' && { hash }) }
    if (failures < MAX_FAILURES) {
      await tx.update(relayLines).set(failed).where(isLine(id))
      return true
    }
    await writeOutcome(tx, id, { ...failed, outcome: 'failed', error: 'failed-too-often' }, now)
  }
  return false
}

type Ended = Partial<Pick<Line, 'hash' | 'failures' | 'unable'>> & { outcome: LineOutcome; error?: LineErrorCode }

/** Writes the outcome of a locked line. */
export async function writeOutcome(tx: Database, id: LineId, ended: Ended, now: Date): Promise<void> {
  const end = { ...ended, settledAt: now, sealedAmount: null, leasedUntil: null }
  await tx.update(relayLines).set(end).where(isLine(id))
}

/**
 * Closes the job of a transfer's line with its last line, and keeps the opening of the channel that has paid. Resolves to a job that
 * it has closed, for `releaseUnsent`: every SQL transaction locks its channels before the quotas, of which all accounts share one.
 */
export async function settleJob(tx: Database, transfer: Transfer, now: Date): Promise<ClosedJob[]> {
  const id = lineOf(transfer)
  const closed = id && (await closeJob(tx, id.job, now))
  await settleChannel(tx, transfer)
  return closed ? [closed] : []
}

async function settleChannel(tx: Database, { status, applied, account }: Transfer): Promise<void> {
  if (status !== 'succeeded' || applied === null) return
  const { innerHash, sealedOpening } = envelopes
  const isOwn = and(eq(innerHash, applied), isNotNull(sealedOpening))
  const [paid] = await tx.select({ sealedOpening }).from(envelopes).where(isOwn)
  // A payment proves that the channel can pay.
  const able = { ...paid, problem: null }
  if (paid) await tx.update(relayChannels).set(able).where(eq(relayChannels.address, account))
}

/** The condition for lines of which a transfer was submitted. The others do not count against a run's quota. */
const WAS_SUBMITTED = sql`exists (select from ${transfers}
  join ${envelopes} on ${envelopes.transfer} = ${transfers.id} and ${envelopes.firstSentAt} is not null where ${PAYS_LINE})`

/** A job that has ended. Only a run has a day on which all of its lines count against the account's quota. */
export interface ClosedJob {
  id: string
  account: string
  day: string | null
}

/**
 * Closes a job if its last line has ended, for `releaseUnsent`. Of two transactions that end the last two lines, the second one does.
 */
export async function closeJob(tx: Database, job: string, now: Date): Promise<ClosedJob | undefined> {
  await tx.select({ id: relayJobs.id }).from(relayJobs).where(eq(relayJobs.id, job)).for('no key update')
  // A line that ends must not read all others: a run may have 50,000. The order is that of the index of a job's open lines: the
  // other indexes have the open lines of all jobs.
  const { position, error: code } = relayLines
  const findFirst = async (condition: SQL) => {
    const isIt = and(eq(relayLines.job, job), condition)
    return (await tx.select({ position, error: code }).from(relayLines).where(isIt).orderBy(position).limit(1))[0]
  }
  if (await findFirst(IS_OPEN_LINE)) return undefined
  const unpaid = await findFirst(notInArray(relayLines.outcome, ['paid', 'canceled']))
  const error = unpaid && `transfer ${unpaid.position}: ${describeLineError(unpaid.error ?? '')}`
  const [ended] = await tx
    .update(relayJobs)
    .set(error ? { status: 'failed', endedAt: now, error, code: unpaid.error } : { status: 'completed', endedAt: now })
    .where(and(eq(relayJobs.id, job), eq(relayJobs.status, 'running')))
    .returning({ id: relayJobs.id, account: relayJobs.userSub, day: relayJobs.quotaDay, batch: relayJobs.batch })
  if (!ended) return undefined
  const { batch, ...closed } = ended
  if (batch !== null) await recordRunEnds(tx, [batch], { isPaid: error === undefined, now })
  return closed
}

/** One entry of the audit log for each run that has ended, by its batch. */
export async function recordRunEnds(
  tx: Database,
  ofBatches: readonly string[],
  { isPaid, now }: { isPaid: boolean; now: Date },
): Promise<void> {
  const rows = await tx
    .select({ subject: batches.id, organisation: batches.organisation })
    .from(batches)
    .where(inArray(batches.id, [...ofBatches]))
  const action = isPaid ? 'batch.run-completed' : 'batch.run-failed'
  await recordAudit(tx, now, ...rows.map((row) => ({ ...row, actor: RELAY, action }) as const))
}

/** Returns the lines that were never submitted to the days whose quota their runs have used for all; none of a job without `day`. */
export async function releaseUnsent(tx: Database, ended: readonly ClosedJob[]): Promise<void> {
  const claims: RunClaim[] = []
  for (const { id, account, day } of ended) {
    if (day === null) continue
    // A payment that was found on the ledger was submitted, too.
    const isUnsent = and(eq(relayLines.job, id), sql`${relayLines.outcome} <> 'paid'`, sql`not ${WAS_SUBMITTED}`)
    claims.push({ account, day, count: await tx.$count(relayLines, isUnsent) })
  }
  await releaseCounts(tx, claims)
}
