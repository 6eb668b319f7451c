import { and, eq, inArray, isNotNull, isNull, ne, or, sql } from 'drizzle-orm'
import { paymentStops, type ReconcileProblem, relayChannels, relayJobs, relayLines } from '#drizzle/schema/relay.ts'
import { type Actor, RELAY, recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { suspendPayouts } from '#lib/directory/payouts/suspension.ts'
import { log } from '#lib/observability/log.ts'
import { IS_OPEN_LINE, releaseUnsent } from '#lib/transfers/line.ts'
import { lockForStop, readStop, type Stop } from '#lib/transfers/stop.ts'
import type { RelayStore } from './relay.ts'

/** Why a run ends after a stop: the employer's client looks at the ledger before it signs again. */
const RESTORED = 'payments were found that the restored database had lost: start the run again'

/** How long (ms) relays may take to reconcile a channel before an operator decides without them. */
export const RECONCILE_PATIENCE_MS = 10 * 60_000

/** Lets payments go on if every channel that is not retired is reconciled for the present stop. */
export async function resumeIfReconciled(store: RelayStore): Promise<boolean> {
  const { token } = store
  return await transact(await store.database(), async (tx) => {
    const stop = await lockStop(tx, token)
    if (!stop || (await findUnreconciled(tx, token, stop.since)).length > 0) return false
    await resume({ tx, token, now: store.now(), actor: RELAY }, { stop, open: [] })
    return true
  })
}

/**
 * Lets payments go on at an operator's word, although channels are not reconciled. If their history is not whole, every payout
 * from before the stop that was not paid becomes `pending` with an error: the employers cancel them, and instruct again what was
 * not paid. Nothing is changed while a channel may still be reconciled without a word.
 */
export async function resumePayments(
  { db, now, actor, token }: { db: Database; now: Date; actor: Actor; token: string },
  { note }: { note: string },
): Promise<'resumed' | 'not-stopped' | { waitsFor: string }> {
  return await transact(db, async (tx) => {
    const stop = await lockStop(tx, token)
    if (!stop) return 'not-stopped'
    const open = await findUnreconciled(tx, token, stop.since)
    const isYoung = now.getTime() - stop.since.getTime() < RECONCILE_PATIENCE_MS
    const waiting = open.find(
      ({ problem }) => problem === 'transfer-open' || (isYoung && (problem === null || problem === 'rpc-behind')),
    )
    if (waiting) return { waitsFor: waiting.address }
    await resume({ tx, token, now, actor }, { stop, open, note })
    return 'resumed'
  })
}

/** Locks the rows of stops: no payment is being recorded then. */
async function lockStop(tx: Database, token: string): Promise<Stop | undefined> {
  await lockForStop(tx)
  return await readStop(tx, token)
}

/** A channel whose payments were not all found yet, and why. */
interface Unreconciled {
  address: string
  problem: ReconcileProblem | null
}

function findUnreconciled(tx: Database, token: string, since: Date): Promise<Unreconciled[]> {
  const { address, reconcileProblem: problem, reconciledStop, retired } = relayChannels
  return tx
    .select({ address, problem })
    .from(relayChannels)
    .where(
      and(
        eq(relayChannels.token, token),
        eq(retired, false),
        or(sql`${reconciledStop} is null`, ne(reconciledStop, since), eq(problem, 'purpose-unknown')),
      ),
    )
    .orderBy(address)
}

/** Ends a stop. Locks as every transaction does: lines, payouts, jobs, channels, quotas. */
async function resume(
  { tx, token, now, actor }: { tx: Database; token: string; now: Date; actor: Actor },
  { stop, open, note }: { stop: Stop; open: readonly Unreconciled[]; note?: string },
): Promise<void> {
  const { found, since } = stop
  const unknown = open.filter(({ problem }) => problem !== 'purpose-unknown').length
  // What an employer has paid itself since the backup shows in no channel.
  const runs = found + unknown > 0 ? await cancelRuns(tx, now) : []
  // The time of a stop does not count towards the day after which a line fails.
  const isOpenOfJob = and(IS_OPEN_LINE, isNull(relayLines.spender))
  const queuedAt = sql`${relayLines.queuedAt} + (clock_timestamp() - greatest(${relayLines.queuedAt}, ${since.toISOString()}::timestamptz))`
  await tx.update(relayLines).set({ queuedAt }).where(isOpenOfJob)
  const suspended = unknown > 0 ? await suspendPayouts({ db: tx, now, actor }, since) : 0
  const ended = await endRuns(tx, runs, now)
  const isOfToken = eq(relayChannels.token, token)
  const addresses = open.map(({ address }) => address)
  // The number that a relay has compared last: what the channel has paid until then is known to the operator alone.
  await tx
    .update(relayChannels)
    .set({ adoptedSequence: sql`greatest(${relayChannels.adoptedSequence}, ${relayChannels.ledgerSequence})` })
    .where(and(isOfToken, inArray(relayChannels.address, addresses)))
  await tx.update(relayChannels).set({ reconcileProblem: null, hasUnknownPurpose: false }).where(isOfToken)
  await releaseUnsent(tx, ended)
  await tx.update(paymentStops).set({ since: null, found: 0 }).where(eq(paymentStops.token, token))
  const detail = { found, ...(note !== undefined && { note, suspended, unreconciled: unknown }) }
  await recordAudit(tx, now, { organisation: undefined, actor, action: 'payments.resumed', subject: token, detail })
  log('info', 'payments go on', { token, ...detail })
}

/** Cancels the open lines of all unfinished runs. Resolves to the ids of the runs. */
async function cancelRuns(tx: Database, now: Date): Promise<string[]> {
  const isRunning = and(eq(relayJobs.status, 'running'), isNotNull(relayJobs.batch))
  const runs = (await tx.select({ id: relayJobs.id }).from(relayJobs).where(isRunning).orderBy(relayJobs.id)).map(
    ({ id }) => id,
  )
  await tx
    .update(relayLines)
    .set({ outcome: 'canceled', error: 'restored', settledAt: now, sealedAmount: null, leasedUntil: null })
    .where(and(inArray(relayLines.job, runs), IS_OPEN_LINE))
  return runs
}

/** Ends runs whose open lines were canceled. A run that another transaction has ended is skipped: its quota was returned then. */
function endRuns(tx: Database, runs: readonly string[], now: Date) {
  return tx
    .update(relayJobs)
    .set({ status: 'failed', error: RESTORED, code: 'restored', endedAt: now })
    .where(and(inArray(relayJobs.id, [...runs]), eq(relayJobs.status, 'running')))
    .returning({ id: relayJobs.id, account: relayJobs.userSub, day: relayJobs.quotaDay })
}
