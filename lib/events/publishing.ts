import { max } from 'drizzle-orm'
import { auditLog } from '#drizzle/schema/audit.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { publishEvents } from './publish.ts'

/** How often a process looks for new entries of the log (ms). */
const EVERY_MS = 1_000

/** Rounds that publish after the last new entry, for entries that commit late; from then on, only every tenth publishes. */
const ROUNDS_AFTER = 45
const IDLE_ROUNDS = 10

/**
 * Publishes events until the returned function is called. Once the log has had no new entry for 45 rounds, nine rounds of ten are
 * one query.
 */
export function startPublishing(database: () => Promise<Database>): () => Promise<void> {
  let seen: number | undefined
  let idle = 0
  let running: Promise<void> | undefined
  const round = async () => {
    try {
      const db = await database()
      const [last] = await db.select({ sequence: max(auditLog.sequence) }).from(auditLog)
      const sequence = last?.sequence ?? 0
      idle = sequence === seen ? idle + 1 : 0
      if (idle > ROUNDS_AFTER && idle % IDLE_ROUNDS !== 0) return
      while ((await publishEvents(db)) > 0);
      seen = sequence
    } catch (error) {
      // Every other user of the database logs that it is unreachable.
      if (!isUnavailable(error)) log('error', 'events', { failure: describeFailure(error) })
    }
  }
  const timer = setInterval(() => {
    running ??= round().finally(() => {
      running = undefined
    })
  }, EVERY_MS)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}

const isUnavailable = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'unavailable'
