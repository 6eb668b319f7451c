import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import { isForgotten } from './recency.ts'
import { findOpenTransfers, findOpenTransfersOf } from './rows.ts'
import type { Tracker } from './track.ts'

/** How long a reader or a chore waits for the ends of transfers (ms). */
const WAIT_MS = 500

/**
 * Tracks the open transfers of organisations whose payouts are read, so that they are settled even where no process keeps
 * running. It waits only briefly and never fails: the next read shows any later result.
 */
export async function adoptTransfersOf(
  db: Database,
  tracker: Tracker,
  organisations: readonly string[],
): Promise<void> {
  if (organisations.length === 0) return
  try {
    await tracker.track(await findOpenTransfersOf(db, organisations), { waitMs: WAIT_MS, lookUp: 'untracked' })
  } catch (error) {
    log('error', 'adoption', { failure: describeFailure(error) })
  }
}

/**
 * Tracks the open transfers that no process looks up. A process that hasn't seen a ledger yet takes them all: its rounds
 * still look up only those that no other process has looked up in the same ledger. Resolves to how many there were.
 * @throws LedgerError `unavailable`
 */
export async function adoptTransfers(db: Database, tracker: Tracker): Promise<number> {
  const open = await findOpenTransfers(db)
  if (open.length === 0) return 0
  const isNew = tracker.recency.latestLedger() === 0
  // A process that tracks nothing doesn't learn of ledgers by its lookups.
  if (!tracker.recency.isCurrent()) {
    const { sequence, closedAt } = await readLatestLedger(tracker.network)
    tracker.recency.observe(sequence, closedAt)
  }
  const latest = tracker.recency.latestLedger()
  const forgotten = open.filter(({ lookedUpLedger }) => isNew || isForgotten(lookedUpLedger, latest))
  await tracker.track(
    forgotten.map(({ id }) => id),
    { waitMs: WAIT_MS, lookUp: 'untracked' },
  )
  return forgotten.length
}
