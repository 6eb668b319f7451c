import { and, lt, not, sql } from 'drizzle-orm'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import { HAS_LIVE_TRANSFER, IS_OPEN_LINE } from '#lib/transfers/line.ts'
import { paymentsGoOn } from '#lib/transfers/stop.ts'
import { endLine } from './ending.ts'
import type { RelayStore } from './relay.ts'

/** A line that has waited this long fails: no relay could decrypt its amount, or no channel could pay it. */
const LINE_FAILS_AFTER_MS = 24 * 60 * 60_000
/** The maximum number of lines per round, oldest first. */
const MAX_LINES = 1_000

/**
 * Ends the lines that no relay pays, for instance because their key is lost. A line that a channel may have paid waits, however
 * long that takes: it must not be called failed, and paid again. Resolves to the number of lines that it has ended.
 */
export async function endOverdueLines(store: RelayStore): Promise<number> {
  const db = await store.database()
  const isLate = lt(relayLines.queuedAt, new Date(store.now().getTime() - LINE_FAILS_AFTER_MS))
  const { job, position } = relayLines
  // Reads lines of every key: there may be no relay left with their key.
  const overdue = await db
    .select({ job, position })
    .from(relayLines)
    .where(and(IS_OPEN_LINE, isLate, not(HAS_LIVE_TRANSFER), not(mayBePaid(store))))
    .orderBy(relayLines.queuedAt, job, position)
    .limit(MAX_LINES)
  let ended = 0
  for (const line of overdue) {
    // Payments may have been stopped in the meantime.
    if (await endLine(store, line, { outcome: 'failed', error: 'too-late' }, not(mayBePaid(store)))) ended += 1
  }
  return ended
}

/**
 * The condition for lines that the ledger may show as paid: payments are stopped, or a channel was not compared with the ledger
 * since they are overdue, as after a restore from a backup.
 */
const mayBePaid = ({ token }: RelayStore) => {
  const overdueAt = sql`${relayLines.queuedAt} + make_interval(secs => ${LINE_FAILS_AFTER_MS / 1000})`
  const isCompared = sql`coalesce(channel.compared_at >= ${overdueAt}, false)`
  return sql`(not ${paymentsGoOn(token)} OR EXISTS (SELECT 1 FROM ${relayChannels} AS channel
    WHERE channel.token = ${token} AND NOT channel.retired AND NOT ${isCompared}))`
}
