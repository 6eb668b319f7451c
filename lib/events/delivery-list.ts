import { and, eq, inArray, isNull, lt, sql } from 'drizzle-orm'
import { z } from 'zod'
import { events } from '#drizzle/schema/events.ts'
import { DELIVERY_ERRORS, DELIVERY_STATUSES, webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transactFor } from '#lib/db/connection.ts'
import { cutPage, type Page, pageQuery, pageRequest } from '#lib/db/paging.ts'
import { isId } from '#lib/directory/ids.ts'
import { defineList } from '#lib/directory/lists.ts'
import { columnsOf, presentAs } from '#lib/directory/presentation.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { auditedEndpoint, ownWebhook, type WebhooksContext, webhookNotFound } from './webhooks.ts'

export const deliveryShape = z.object({
  id: z.string(),
  eventId: z.string(),
  type: z.string(),
  status: z.enum(DELIVERY_STATUSES).meta({
    description: '`held` while the endpoint is disabled; `failed` once no attempt follows',
  }),
  attempts: z.int(),
  createdAt: z.iso.datetime(),
  attemptedAt: z.iso.datetime().optional().meta({ description: 'when the last attempt began' }),
  due: z.iso.datetime().optional().meta({
    description: 'when the next attempt may begin; absent while it waits for an earlier event of its batch',
  }),
  endedAt: z.iso.datetime().optional(),
  error: z.enum(DELIVERY_ERRORS).optional().meta({ description: 'why the last attempt failed' }),
  responseStatus: z.int().optional(),
  response: z.string().optional().meta({ description: 'the beginning of the last response’s body' }),
})
export const deliveriesShape = z.object({ deliveries: z.array(deliveryShape) })

type Delivery = z.output<typeof deliveryShape>

const COLUMNS = columnsOf(webhookDeliveries, deliveryShape)

type Row = { [Name in keyof typeof COLUMNS]: (typeof webhookDeliveries.$inferSelect)[Name] }

const presentRow = presentAs(deliveryShape)

/** Only a waiting delivery has a next attempt. */
const present = (row: Row): Delivery => presentRow({ ...row, due: row.status === 'waiting' ? row.due : null })

const LIST = defineList(webhookDeliveries, { ...COLUMNS, sequence: webhookDeliveries.sequence }, (organisation) =>
  eq(webhooks.organisation, organisation),
)

/**
 * Lists the deliveries of an endpoint, newest first.
 * @throws Refusal `webhook-not-found`
 */
export async function listDeliveries(
  { db, employer }: WebhooksContext,
  { id, ...query }: z.output<typeof pageQuery> & { id: string },
): Promise<Page<Delivery>> {
  const [webhook] = await db.select({ id: webhooks.id }).from(webhooks).where(ownWebhook(employer, id))
  if (!webhook) throw webhookNotFound()
  const page = pageRequest(query)
  const isOfWebhook = eq(webhookDeliveries.webhook, id)
  const { items, next } = cutPage(await LIST.readWhere(db, employer.organisation, isOfWebhook, page), page)
  return { items: items.map(present), next }
}

export { pageQuery as deliveriesQuery }

/**
 * Has an event sent again, or now. Events of its batch that wait are sent after it.
 * @throws Refusal `webhook-not-found`, `delivery-not-found`, `webhook-disabled`
 */
export async function redeliver(
  { db, employer, now }: WebhooksContext,
  { id, delivery }: { id: string; delivery: string },
): Promise<Delivery> {
  const { webhook, status, event } = webhookDeliveries
  const [hook] = await db
    .select({ at: webhooks.disabledAt, url: webhooks.url })
    .from(webhooks)
    .where(ownWebhook(employer, id))
  if (!hook) throw webhookNotFound()
  if (hook.at !== null) throw new Refusal('webhook-disabled')
  const isThis = and(eq(webhookDeliveries.id, isId(delivery) ? delivery : sql`null`), eq(webhook, id))
  const isWaiting = sql`${status} = 'waiting'`
  const isEnabled = inArray(webhook, db.select({ id: webhooks.id }).from(webhooks).where(isNull(webhooks.disabledAt)))
  const hasEvent = inArray(event, db.select({ number: events.number }).from(events))
  return await transactFor(db, employer.organisation, async (tx) => {
    const [again] = await tx
      .update(webhookDeliveries)
      .set({
        status: 'waiting',
        attempts: sql`case when ${isWaiting} then ${webhookDeliveries.attempts} else 0 end`,
        // An earlier event of its batch comes first, and makes this one due.
        due: sql`case when not exists (select from ${webhookDeliveries} as earlier
          where earlier.webhook = ${webhook} and earlier.batch = ${webhookDeliveries.batch}
            and earlier.event < ${event} and earlier.status = 'waiting') then clock_timestamp() end`,
        endedAt: null,
      })
      .where(and(isThis, isEnabled, hasEvent))
      .returning(COLUMNS)
    if (!again) throw new Refusal('delivery-not-found')
    const detail = { ...auditedEndpoint(hook.url), type: again.type }
    await recordAudit(tx, now, { ...employer, action: 'webhook.redelivered', subject: id, detail })
    return present(again)
  })
}

/** How long deliveries are kept (days), and how many a round deletes at most. */
const KEPT_DAYS = 30
const MAX_DELETED = 1_000

/**
 * Deletes old deliveries that have ended, oldest first. A waiting or held one stays: later events of its batch wait for it.
 * Resolves to the number deleted.
 */
export async function purgeDeliveries(db: Database, now: Date): Promise<number> {
  const { id, createdAt, status } = webhookDeliveries
  const isOld = and(
    lt(createdAt, new Date(now.getTime() - KEPT_DAYS * 86_400_000)),
    inArray(status, ['delivered', 'failed']),
  )
  const oldest = db.select({ id }).from(webhookDeliveries).where(isOld).orderBy(createdAt).limit(MAX_DELETED)
  return (await db.delete(webhookDeliveries).where(inArray(id, oldest)).returning({ id })).length
}
