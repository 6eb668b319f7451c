import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Submission } from './submission.ts'
import { findOpenTransfersOf } from './transfers.ts'

/**
 * A reader of the payouts of organisations looks after their open transfers too, so that they are settled even where no
 * process lasts. Takes a short time at most, and never fails: what is not known yet the next reader will learn.
 */
export async function refreshTransfers(
  db: Database,
  submission: Submission,
  organisations: readonly string[],
): Promise<void> {
  if (organisations.length === 0) return
  try {
    await submission.refresh(await findOpenTransfersOf(db, organisations))
  } catch (error) {
    log('error', 'refresh', { failure: describeFailure(error) })
  }
}
