import { gt, inArray, isNull, lt, or } from 'drizzle-orm'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import { FORGOTTEN_LEDGERS } from './resubmit.ts'
import { findOpenTransfers } from './rows.ts'
import type { Tracker } from './track.ts'

/** How long a reader or a chore waits for the ends of transfers (ms). */
const WAIT_MS = 500

/**
 * Tracks the open transfers of organisations whose payouts are read, so that they are settled even where no process keeps
 * running. It waits only briefly and never fails: the next read shows any later result.
 */
export async function adoptTransfersOf(db: Database, tracker: Tracker, organisations: readonly string[]) {
  if (organisations.length === 0) return
  try {
    const open = await findOpenTransfers(db, { condition: inArray(transfers.organisation, organisations) })
    await tracker.track(open, { waitMs: WAIT_MS, lookUp: 'untracked' })
  } catch (error) {
    log('error', 'adoption', { failure: describeFailure(error) })
  }
}

/** The maximum number of transfers that a round adopts. */
const MAX_ADOPTED = 1_000

/**
 * Tracks the oldest open transfers that no process looks up, and that this one doesn't track yet. A process that hasn't
 * seen a ledger yet takes all open ones: its rounds still look up only those that no other process has looked up in the
 * same ledger. Resolves to how many there were.
 * @throws LedgerError `unavailable`
 */
export async function adoptTransfers(db: Database, tracker: Tracker): Promise<number> {
  if ((await findOpenTransfers(db, { limit: 1 })).length === 0) return 0
  const isNew = tracker.view.latestLedger() === 0
  // A process that tracks nothing doesn't learn of ledgers by its lookups.
  if (!tracker.view.isCurrent()) await readLatestLedger(tracker.network)
  const { lookedUpLedger: lookedUp } = transfers
  const latest = tracker.view.latestLedger()
  const isForgotten = or(isNull(lookedUp), gt(lookedUp, latest), lt(lookedUp, latest - FORGOTTEN_LEDGERS))
  const condition = isNew ? undefined : isForgotten
  // However many of them this process tracks already, the limit leaves room for the others.
  const open = await findOpenTransfers(db, { condition, limit: MAX_ADOPTED + tracker.tracked.size })
  const orphans = open.filter((id) => !tracker.tracked.has(id)).slice(0, MAX_ADOPTED)
  await tracker.track(orphans, { waitMs: WAIT_MS, lookUp: 'untracked' })
  return orphans.length
}
