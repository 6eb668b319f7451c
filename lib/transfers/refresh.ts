import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { findOpenTransfersOf } from './rows.ts'
import type { Submission } from './submission.ts'

/**
 * A read of the payouts of organisations tracks their open transfers, so that they are settled even where no process
 * lasts. It takes a short time at most, and never fails: a result that comes later is seen by the next read.
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
