import { sql } from 'drizzle-orm'
import { events } from '#drizzle/schema/events.ts'
import { webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import type { Database } from '#lib/db/connection.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { AT_ONCE, attemptDue, IS_DUE } from './delivery.ts'
import { fanOut } from './fan-out.ts'
import { keyIdOf } from './signature.ts'
import type { Webhooks } from './webhooks.ts'

export const DELIVERS_EVERY_MS = 1_000

/**
 * Delivers events soon after they happen, until the returned function is called; that resolves once the last attempt has ended or was
 * given back. Where no process keeps running, the chore delivers instead.
 */
export function startDelivering({ webhooks: context }: { webhooks: Webhooks }, everyMs = DELIVERS_EVERY_MS) {
  const stopping = new AbortController()
  const slots = { busy: 0 }
  const running = new Set<Promise<void>>()
  let isLooking = false
  let isFailing = false
  /** the last event whose deliveries are made */
  let seen: number | undefined
  const look = async () => {
    const db = await context.database()
    const { newest, isDue } = await lookForWork(db, context)
    if (newest === seen && !isDue) return false
    await fanOut(context, () => stopping.signal.aborted).then(
      () => {
        seen = newest
      },
      // Existing deliveries go on even if another endpoint’s cannot be created.
      report,
    )
    return true
  }
  const report = (error: unknown) => {
    // Once per outage, and not every second.
    if (!isFailing) log('error', 'webhooks', { failure: describeFailure(error) })
    isFailing = true
  }
  const run = async () => {
    try {
      const hasWork = await look().finally(() => {
        isLooking = false
      })
      if (hasWork) await attemptDue(context, { slots, stop: stopping.signal })
      else isFailing = false
    } catch (error) {
      report(error)
    }
  }
  const tick = () => {
    // The attempts of a slow endpoint go on meanwhile: the next ones have the other slots.
    if (isLooking || slots.busy >= AT_ONCE) return
    isLooking = true
    const begun = run().finally(() => running.delete(begun))
    running.add(begun)
  }
  const timer = setInterval(tick, everyMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    stopping.abort()
    await Promise.all(running)
  }
}

/** Looks at the ends of three indexes. */
async function lookForWork(db: Database, { secret }: Webhooks): Promise<{ newest: number; isDue: boolean }> {
  const [row] = await db
    .select({
      newest: sql`(select coalesce(max(${events.number}), 0) from ${events})`.mapWith(Number),
      isDue: sql<boolean>`exists (select from ${webhooks} as hook where hook.disabled_at is null
            and hook.key_id = ${keyIdOf(secret)}
            and exists (select from ${webhookDeliveries} as delivery where delivery.webhook = hook.id and ${IS_DUE}))
        or exists (select from ${webhooks} where ${webhooks.noticeDue} <= clock_timestamp())`,
    })
    .from(sql`(values (1)) as one`)
  return row ?? { newest: 0, isDue: false }
}
