import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import type { Sponsor } from './sponsor.ts'
import { findOpenTransfersOf } from './transfer-record.ts'

/**
 * Whoever looks at the payouts of organisations looks after their open transfers too, so that they are settled even
 * where no process lasts. Takes a short time at most, and never fails: what is not known yet the next look will tell.
 */
export async function settleByLooking(
  db: Database,
  sponsor: Sponsor | undefined,
  organisations: readonly string[],
): Promise<void> {
  if (!sponsor || organisations.length === 0) return
  try {
    await sponsor.settlement.lookAfter(await findOpenTransfersOf(db, organisations))
  } catch (error) {
    log('error', 'looking', { failure: describeFailure(error) })
  }
}
