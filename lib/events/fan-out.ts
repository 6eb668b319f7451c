import { and, eq, gt, isNull, sql } from 'drizzle-orm'
import { events } from '#drizzle/schema/events.ts'
import { webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { keyIdOf } from './signature.ts'
import type { Webhooks } from './webhooks.ts'

/** How many endpoints one query finds, and how many events of an endpoint one transaction handles. */
const ENDPOINTS = 100
const EVENTS = 500

/**
 * Creates deliveries of new events, until `isOver`, for the enabled endpoints whose secrets this process has. The cursor of an
 * endpoint misses no event: one publisher at a time commits events, so they become visible in the order of their numbers.
 */
export async function fanOut({ database, secret }: Webhooks, isOver: () => boolean): Promise<void> {
  const isNewer = and(eq(events.organisation, webhooks.organisation), gt(events.number, webhooks.cursor))
  const hasNewer = sql`exists (select from ${events} where ${isNewer})`
  const isServed = and(isNull(webhooks.disabledAt), eq(webhooks.keyId, keyIdOf(secret)))
  const db = await database()
  while (!isOver()) {
    const behind = await db
      .select({ id: webhooks.id })
      .from(webhooks)
      .where(and(isServed, hasNewer))
      .orderBy(webhooks.cursor)
      .limit(ENDPOINTS)
    if (behind.length === 0) return
    let failure: unknown
    for (const { id } of behind) {
      // One endpoint must not keep the others from their events.
      await makeDeliveries(db, id).catch((error: unknown) => {
        failure = error
      })
    }
    if (failure) throw failure
  }
}

/**
 * Creates the deliveries of an endpoint's next events, and moves its cursor. While it holds the lock of the endpoint's row, no
 * other process does so and no attempt ends. Of a batch, only the first waiting delivery is due; each that ends wakes the next.
 */
async function makeDeliveries(db: Database, id: string): Promise<void> {
  await transact(db, async (tx) => {
    const isThis = and(eq(webhooks.id, id), isNull(webhooks.disabledAt))
    const [hook] = await tx.select({ id: webhooks.id }).from(webhooks).where(isThis).for('no key update')
    if (!hook) return
    await tx.execute(sql`with fresh as (
        select event.number, event.token, event.type, (event.data ->> 'batchId')::uuid as batch, hook.types
          from ${webhooks} as hook join ${events} as event
            on event.organisation = hook.organisation and event.number > hook.cursor
          where hook.id = ${id} order by event.number limit ${EVENTS}
      ), wanted as (
        select *, row_number() over (partition by batch order by number) as place from fresh
          where types is null or type = any(types)
      ), made as (
        insert into ${webhookDeliveries} (webhook, event, event_id, type, batch, due)
          select ${id}::uuid, number, number || '-' || token, type, batch,
            case when batch is null or (place = 1 and not exists (select from ${webhookDeliveries} as earlier
              where earlier.webhook = ${id} and earlier.batch = wanted.batch and earlier.status in ('waiting', 'held')))
              then clock_timestamp() end
          from wanted order by number
      ) update ${webhooks} as hook set cursor = (select max(number) from fresh)
        where hook.id = ${id} and exists (select from fresh)`)
  })
}
