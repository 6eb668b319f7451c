import type { SQL } from 'drizzle-orm'
import { type Database, transact } from '#lib/db/connection.ts'
import { failPayout } from '#lib/directory/payouts/failure.ts'
import { closeJob, type LineId, lockLine, writeOutcome } from '#lib/transfers/line.ts'
import type { LineErrorCode } from '#lib/transfers/line-error.ts'
import type { RelayStore } from './relay.ts'

/** How a line ends without a transfer. `canceled`: the payout of a run was canceled, or paid by another transfer. */
export type Ending = { outcome: 'failed'; error: LineErrorCode; unable?: string[] } | { outcome: 'canceled' }

/**
 * Ends a line that no transfer pays, and its job with the last one, in one SQL transaction. False if it has ended, or if a
 * transfer may pay it: that transfer ends it then.
 * @param condition must hold for the line's row, which is locked
 */
export async function endLine(
  store: Pick<RelayStore, 'database' | 'now'>,
  line: LineId,
  ending: Ending,
  condition?: SQL,
): Promise<boolean> {
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
    await closeJob(tx, line.job, now)
    return true
  })
}
