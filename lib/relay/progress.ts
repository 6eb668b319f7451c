import { eq, max } from 'drizzle-orm'
import { relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import { openProofTimes } from '#lib/prover/progress.ts'
import type { LineId } from '#lib/transfers/line.ts'

/** Runs `work`, which proves a line's transfer. Logs its number in the job, and how long the rest may take. */
export type ShowProgress = <Result>(db: Database, line: LineId, work: () => Promise<Result>) => Promise<Result>

/** For how many jobs the started transfers are remembered. */
const REMEMBERED_JOBS = 100

/** Counts transfers as this process begins to prove them. */
export function openProgress(): ShowProgress {
  const begun = new Map<string, Set<number>>()
  const times = openProofTimes()
  return async (db, { job, position }, work) => {
    const isOfJob = eq(relayLines.job, job)
    const [last] = await db
      .select({ position: max(relayLines.position) })
      .from(relayLines)
      .where(isOfJob)
    const total = (last?.position ?? 0) + 1
    const positions = (begun.get(job) ?? new Set()).add(position)
    begun.set(job, positions)
    const [oldest] = begun.keys()
    if (begun.size > REMEMBERED_JOBS && oldest !== undefined) begun.delete(oldest)
    const left = times.describeLeft(total - positions.size + 1)
    log('info', 'proving', { job, line: position, progress: `proving ${positions.size} of ${total}`, left })
    return await times.measure(work)
  }
}
