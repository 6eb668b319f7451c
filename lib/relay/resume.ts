import { and, eq, inArray, isNotNull, isNull, lt, or, sql } from 'drizzle-orm'
import { paymentStops, relayChannels, relayJobs, relayLines, type StopProblem } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Actor, RELAY, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { suspendPayouts } from '#lib/directory/payouts/suspension.ts'
import { log } from '#lib/observability/log.ts'
import { IS_OPEN_LINE, recordRunEnds, releaseUnsent } from '#lib/transfers/line.ts'
import { lockForStop, readStop, type Stop } from '#lib/transfers/stop.ts'
import { isInUse, problemDuring } from './channel-state.ts'
import type { RelayStore } from './relay.ts'

/** Why a run ends after a stop: the employer's client looks at the ledger before it signs again. */
const RESTORED = 'payments were found that the restored database had lost: start the run again'

/** How long (ms) relays may take to reconcile a channel before an operator decides without them. */
export const RECONCILE_PATIENCE_MS = 10 * 60_000

interface ResumeContext {
  db: Database
  now: Date
  actor: Actor
  token: string
}

/** Lets payments go on if every channel that is not retired is reconciled for the present stop. */
export async function resumeIfReconciled({ database, token, now }: RelayStore): Promise<boolean> {
  return (await resumePayments({ db: await database(), token, now: now(), actor: RELAY })) === 'resumed'
}

/**
 * Lets payments go on: with a note, at an operator's word, although channels are not reconciled. If their history is not whole, every
 * payout from before the stop that was not paid becomes `pending` with an error: the employers cancel them, and instruct again what
 * was not paid. Nothing is changed while a channel may still be reconciled without a word, or a transfer from before the stop is
 * undecided.
 */
export async function resumePayments(
  { db, ...context }: ResumeContext,
  { note }: { note?: string } = {},
): Promise<'resumed' | 'not-stopped' | { waitsFor: string } | { undecided: string }> {
  return await transact(db, async (tx) => {
    const { token, now } = context
    // No payment is being recorded then.
    await lockForStop(tx)
    const stop = await readStop(tx, token)
    if (!stop) return 'not-stopped'
    const open = await findUnreconciled(tx, token, stop)
    const isYoung = now.getTime() - stop.since.getTime() < RECONCILE_PATIENCE_MS
    const mayEndAlone = ({ problem }: Unreconciled) =>
      isYoung && (problem === null || problem === 'rpc-behind' || problem === 'transfer-open')
    const waiting = note === undefined ? open[0] : open.find(mayEndAlone)
    if (waiting) return { waitsFor: waiting.address }
    const isWhole = open.every(({ problem }) => problem === 'purpose-unknown')
    const undecided = isWhole ? undefined : await findUndecided(tx, stop)
    if (undecided) return { undecided }
    await resume({ ...context, db: tx }, { stop, open, note })
    return 'resumed'
  })
}

/** The condition for channels whose payments were not all found during this stop. */
export const isUnreconciled = ({ since }: Stop) =>
  sql`${relayChannels.reconciledStop} is distinct from ${since.toISOString()}::timestamptz`

/** An open transfer of a payment that was recorded before the stop: its payout is not suspended, and its end may free it. */
async function findUndecided(tx: Database, { since }: Stop): Promise<string | undefined> {
  const { id, status, createdAt, payout, lineJob } = transfers
  // No line's is recorded during a stop. The times of clients' transfers are the database's, as that of the stop.
  const isOlder = or(isNotNull(lineJob), and(isNotNull(payout), lt(createdAt, since)))
  const [open] = await tx
    .select({ id })
    .from(transfers)
    .where(and(eq(status, 'open'), isOlder))
    .limit(1)
  return open?.id
}

interface Unreconciled {
  address: string
  problem: StopProblem | null
}

/** The channels that keep payments stopped, and why. */
function findUnreconciled(tx: Database, token: string, stop: Stop): Promise<Unreconciled[]> {
  const { address, hasUnknownPurpose } = relayChannels
  const columns = {
    address,
    problem: problemDuring(sql`${stop.since.toISOString()}::timestamptz`),
  }
  const isOpen = and(isInUse(token), or(isUnreconciled(stop), hasUnknownPurpose))
  return tx.select(columns).from(relayChannels).where(isOpen).orderBy(address)
}

/** Ends a stop. Locks as every transaction does: lines, payouts, jobs, channels, quotas. */
async function resume(
  { db: tx, token, now, actor }: ResumeContext,
  { stop, open, note }: { stop: Stop; open: readonly Unreconciled[]; note: string | undefined },
): Promise<void> {
  const { found, since } = stop
  const unreconciled = open.filter(({ problem }) => problem !== 'purpose-unknown').length
  // What an employer has paid itself since the backup shows in no channel.
  const runs = found + unreconciled > 0 ? await cancelRuns(tx, now) : []
  // The time of a stop does not count towards the day after which a line fails.
  const queuedAt = sql`${relayLines.queuedAt} + (clock_timestamp() - greatest(${relayLines.queuedAt}, ${since.toISOString()}::timestamptz))`
  const isOpenOfJob = and(IS_OPEN_LINE, isNull(relayLines.spender))
  await tx.update(relayLines).set({ queuedAt }).where(isOpenOfJob)
  const suspended = unreconciled > 0 ? await suspendPayouts({ db: tx, now, actor }, since) : 0
  // A run that another transaction has ended is skipped: its quota was returned then.
  const ended = await tx
    .update(relayJobs)
    .set({ status: 'failed', error: RESTORED, code: 'restored', endedAt: now })
    .where(and(inArray(relayJobs.id, runs), eq(relayJobs.status, 'running')))
    .returning({ id: relayJobs.id, account: relayJobs.userSub, day: relayJobs.quotaDay, batch: relayJobs.batch })
  const ofBatches = ended.flatMap(({ batch }) => batch ?? [])
  await recordRunEnds(tx, ofBatches, { isPaid: false, now })
  const isOfToken = eq(relayChannels.token, token)
  const addresses = open.map(({ address }) => address)
  // The number that a relay has compared last: what the channel has paid until then is known to the operator alone. A channel whose
  // payments were all found keeps its number: if it has moved since, payments stop again.
  const adoptedSequence = sql`greatest(${relayChannels.adoptedSequence}, ${relayChannels.ledgerSequence})`
  const isOpen = and(isOfToken, inArray(relayChannels.address, addresses), isUnreconciled(stop))
  await tx.update(relayChannels).set({ adoptedSequence }).where(isOpen)
  await tx.update(relayChannels).set({ reconcileProblem: null, hasUnknownPurpose: false }).where(isOfToken)
  await releaseUnsent(tx, ended)
  await tx.update(paymentStops).set({ since: null, found: 0 }).where(eq(paymentStops.token, token))
  const detail = { found, ...(note !== undefined && { note, suspended, unreconciled }) }
  await recordAudit(tx, now, { organisation: undefined, actor, action: 'payments.resumed', subject: token, detail })
  log('info', 'payments go on', { token, ...detail })
}

/** Cancels the open lines of all unfinished runs. Resolves to the ids of the runs. */
async function cancelRuns(tx: Database, now: Date): Promise<string[]> {
  const isRunning = and(eq(relayJobs.status, 'running'), isNotNull(relayJobs.batch))
  const rows = await tx.select({ id: relayJobs.id }).from(relayJobs).where(isRunning).orderBy(relayJobs.id)
  const runs = rows.map(({ id }) => id)
  const canceled = {
    outcome: 'canceled',
    error: 'restored',
    settledAt: now,
    sealedAmount: null,
    leasedUntil: null,
  } as const
  const isOfRun = and(inArray(relayLines.job, runs), IS_OPEN_LINE)
  await tx.update(relayLines).set(canceled).where(isOfRun)
  return runs
}
