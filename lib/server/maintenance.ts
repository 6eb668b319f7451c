import { purgeUsedChallenges } from '#lib/auth/sep10/claim.ts'
import { analyzeGrownTables } from '#lib/db/statistics.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { findOpenTransfers } from '#lib/sponsor/transfer-record.ts'
import type { Service } from './services.ts'

const EVERY_MS = 30_000

/**
 * What every process does on the side, at once and then every half minute, until the returned function is called: it
 * takes up transfers and faucet grants that a process which ended, or lost the database's answer, has left open, and
 * throws away challenges that have long expired, and tells PGlite's planner of tables that have grown. The database may be out of reach: then the next time.
 */
export function keepHouse(service: Pick<Service, 'database' | 'sponsor' | 'faucet' | 'now'>): () => void {
  let busy = false
  const tidy = async () => {
    if (busy) return
    busy = true
    try {
      const db = await service.database()
      service.faucet?.dispenser.wake()
      await service.sponsor?.settlement.lookAfter(await findOpenTransfers(db))
      await purgeUsedChallenges(db, service.now())
      await analyzeGrownTables(db)
    } catch (error) {
      log('error', 'housekeeping', { failure: describeFailure(error) })
    } finally {
      busy = false
    }
  }
  void tidy()
  const timer = setInterval(tidy, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
