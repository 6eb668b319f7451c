import { and, asc, eq, isNotNull, isNull, lt, not, type SQL, sql } from 'drizzle-orm'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { failPayout } from '#lib/directory/payouts/failure.ts'
import {
  closeJob,
  HAS_LIVE_TRANSFER,
  IS_OPEN_LINE,
  type LineId,
  lockLine,
  releaseUnsent,
  writeOutcome,
} from '#lib/transfers/line.ts'
import type { LineErrorCode } from '#lib/transfers/line-error.ts'
import { paymentsGoOn } from '#lib/transfers/stop.ts'
import type { RelayStore } from './relay.ts'
import { COMPARED_SECONDS } from './sequence.ts'

/** How a line ends without a transfer. `canceled`: the payout of a run was canceled, or paid by another transfer. */
export type Ending = { outcome: 'failed'; error: LineErrorCode; unable?: string[] } | { outcome: 'canceled' }

/**
 * Ends a line that no transfer pays, and its job with the last one, in one SQL transaction. False if it has ended, or if a
 * transfer may pay it: that transfer ends it then.
 * @param condition must hold for the line's row, which is locked
 */
export async function endLine(store: RelayStore, line: LineId, ending: Ending, condition?: SQL): Promise<boolean> {
  return await transact(await store.database(), async (tx: Database) => {
    const locked = await lockLine(tx, line, condition)
    if (!locked) return false
    const now = store.now()
    await writeOutcome(tx, line, ending, now)
    const { payout: id } = locked
    // An invalid manifest says nothing about the payout.
    if (ending.outcome === 'failed' && id !== null && ending.error !== 'manifest-invalid') {
      await failPayout({ db: tx, now }, { id, error: ending.error })
    }
    const closed = await closeJob(tx, line.job, now)
    if (closed) await releaseUnsent(tx, [closed])
    return true
  })
}

/** A line of a job that has waited this long fails: no relay could decrypt its amount, or no channel could pay it. */
const LINE_FAILS_AFTER_MS = 24 * 60 * 60_000
/** The maximum number of lines of a kind per round, oldest first. */
const MAX_LINES = 1_000

/** What ending overdue lines needs. No key: there may be no relay left with theirs. */
export interface Overdue extends RelayStore {
  /** Whether a ledger has closed, by the ledger itself. @throws LedgerError `unavailable` */
  hasClosed(ledger: number): Promise<boolean>
}

/**
 * Ends the lines that no relay pays, for instance because their key is lost: those of jobs after a day, those of runs once their
 * delegation has ended by the ledger. A line that a channel may have paid waits, however long that takes: it must not be called failed,
 * and paid again. Resolves to the number of lines that it has ended.
 */
export async function endOverdueLines(store: Overdue): Promise<number> {
  const db = await store.database()
  const { queuedAt, spender, liveUntil } = relayLines
  const isLate = lt(queuedAt, new Date(store.now().getTime() - LINE_FAILS_AFTER_MS))
  const ofJobs = await endLines(store, db, {
    error: 'too-late',
    isOverdue: and(isNull(spender), isLate),
    comparedSince: sql`${queuedAt} + make_interval(secs => ${LINE_FAILS_AFTER_MS / 1000})`,
  })
  const isOfRun = and(IS_OPEN_LINE, isNotNull(liveUntil))
  const [first] = await db.select({ liveUntil }).from(relayLines).where(isOfRun).orderBy(asc(liveUntil)).limit(1)
  if (!first?.liveUntil || !(await store.hasClosed(first.liveUntil + 1))) return ofJobs
  const ofRuns = await endLines(store, db, {
    error: 'delegation-ended',
    isOverdue: eq(liveUntil, first.liveUntil),
    comparedSince: sql`clock_timestamp() - make_interval(secs => ${COMPARED_SECONDS})`,
  })
  return ofJobs + ofRuns
}

/** @param given.comparedSince when every channel must have been compared last, by the database's clock */
async function endLines(
  store: Overdue,
  db: Database,
  given: { error: LineErrorCode; isOverdue: SQL | undefined; comparedSince: SQL },
): Promise<number> {
  const { error, isOverdue, comparedSince } = given
  // The ledger may show a line as paid while payments are stopped, or if a channel was not compared since, as after a restore.
  const isUnpaid = sql`(${paymentsGoOn(store.token)} AND NOT EXISTS (SELECT 1 FROM ${relayChannels} AS channel
    WHERE channel.token = ${store.token} AND NOT channel.retired AND NOT coalesce(channel.compared_at >= ${comparedSince}, false)))`
  const { job, position, queuedAt } = relayLines
  const overdue = await db
    .select({ job, position })
    .from(relayLines)
    .where(and(IS_OPEN_LINE, isOverdue, not(HAS_LIVE_TRANSFER), isUnpaid))
    .orderBy(queuedAt, job, position)
    .limit(MAX_LINES)
  let ended = 0
  for (const line of overdue) {
    // Payments may have been stopped in the meantime.
    if (await endLine(store, line, { outcome: 'failed', error }, isUnpaid)) ended += 1
  }
  return ended
}
