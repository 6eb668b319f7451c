import { eq, sql } from 'drizzle-orm'
import { batchItems } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import type { ItemId } from './sealing.ts'

/** Runs the work that proves an item's transfer, and says which of how many it is, and how long the rest may take. */
export type ShowProgress = <Result>(db: Database, item: ItemId, work: () => Promise<Result>) => Promise<Result>

/** The estimate is the mean of the last proofs of this process, each new one weighing as much as all before it. */
export function openProgress(): ShowProgress {
  let mean: number | undefined
  return async (db, { job, position }, work) => {
    const [counted] = await db
      .select({
        total: sql<number>`count(*)::int`,
        unsigned: sql<number>`count(*) FILTER (WHERE ${batchItems.status} IN ('queued', 'taken'))::int`,
      })
      .from(batchItems)
      .where(eq(batchItems.job, job))
    const { total = 0, unsigned = 0 } = counted ?? {}
    const left = mean === undefined ? undefined : `about ${Math.ceil((mean * unsigned) / 1000)} s left`
    log('info', 'proving', { job, item: position, progress: `proving ${position + 1} of ${total}`, left })
    const began = performance.now()
    const result = await work()
    const took = performance.now() - began
    mean = mean === undefined ? took : (mean + took) / 2
    return result
  }
}
