import { eq, max } from 'drizzle-orm'
import { batchItems } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import type { ItemId } from './item-row.ts'

/** Runs `work`, which proves an item's transfer. Logs its number in the job, and how long the rest may take. */
export type ShowProgress = <Result>(db: Database, item: ItemId, work: () => Promise<Result>) => Promise<Result>

/** For how many jobs the started transfers are remembered. */
const REMEMBERED_JOBS = 100

/**
 * Counts transfers as this process begins to prove them. The estimate is a mean of proof times in which the newest
 * weighs as much as all earlier ones together.
 */
export function openProgress(): ShowProgress {
  const begun = new Map<string, Set<number>>()
  let meanMs: number | undefined
  let lastEnd = 0
  return async (db, { job, position }, work) => {
    const [last] = await db
      .select({ position: max(batchItems.position) })
      .from(batchItems)
      .where(eq(batchItems.job, job))
    const total = (last?.position ?? 0) + 1
    const positions = (begun.get(job) ?? new Set()).add(position)
    begun.set(job, positions)
    const [oldest] = begun.keys()
    if (begun.size > REMEMBERED_JOBS && oldest !== undefined) begun.delete(oldest)
    const remaining = total - positions.size + 1
    log('info', 'proving', {
      job,
      item: position,
      progress: `proving ${positions.size} of ${total}`,
      left: meanMs === undefined ? undefined : `about ${Math.ceil((meanMs * remaining) / 1000)} s left`,
    })
    const start = performance.now()
    const result = await work()
    // Proofs are generated one at a time: the time spent waiting for an earlier proof counts towards that proof.
    const now = performance.now()
    const durationMs = now - Math.max(start, lastEnd)
    lastEnd = now
    meanMs = meanMs === undefined ? durationMs : (meanMs + durationMs) / 2
    return result
  }
}
