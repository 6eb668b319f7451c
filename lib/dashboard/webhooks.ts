import { and, desc, eq, inArray, isNotNull, ne, sql } from 'drizzle-orm'
import { type DELIVERY_ERRORS, type DISABLED_REASONS, webhookDeliveries, webhooks } from '#drizzle/schema/webhooks.ts'
import type { Database } from '#lib/db/connection.ts'
import type { RecordCondition } from './attention.ts'

const WHY: Record<(typeof DISABLED_REASONS)[number], string> = {
  gone: 'it responded with status 410 (Gone), which asks for no more events',
  failing: 'an event could not be delivered in 14 attempts over two days',
}

/** A disabled endpoint. A successful test enables it and sends what it missed, except the event that failed. */
export const webhookDisabled: RecordCondition = {
  level: 'late',
  holds: () => isNotNull(webhooks.disabledAt),
  order: [desc(webhooks.disabledAt), webhooks.id],
  describe: async (db, ids) => {
    const { id, url, disabledReason } = webhooks
    const rows = await db.select({ id, url, disabledReason }).from(webhooks).where(inArray(id, ids))
    return (row) => {
      const webhook = rows.find((one) => one.id === row.id)
      if (!webhook?.disabledReason) return undefined
      const { host } = new URL(webhook.url)
      return {
        what: `the webhook at ${host} is disabled`,
        why: WHY[webhook.disabledReason],
        actor: 'employer',
        remedy: 'Ask the employer to repair the endpoint and then send it a test event, or to delete it.',
        request: `Please repair the webhook at ${host}, and have your payroll application send it a test event: a successful test enables it again and sends the events that it missed, except the one that failed, which you can redeliver. If you no longer need the webhook, delete it.`,
      }
    }
  },
}

export type WebhookLine = Awaited<ReturnType<typeof listWebhookLines>>[number]

/** The endpoints of an organisation, newest first. Only the host of a URL is shown: the rest may contain a secret. */
export async function listWebhookLines(db: Database, organisation: string) {
  const { id, url, types, disabledAt, createdAt, sequence } = webhooks
  const ofHook = (status: 'delivered' | 'waiting' | 'held') =>
    sql`from ${webhookDeliveries} as delivery where delivery.webhook = ${id} and delivery.status = ${status}`
  const rows = await db
    .select({
      id,
      url,
      types,
      disabledAt,
      createdAt,
      deliveredAt: sql<Date | null>`(select max(delivery.ended_at) ${ofHook('delivered')})`.mapWith(createdAt),
      waiting: sql`(select count(*) ${ofHook('waiting')}) + (select count(*) ${ofHook('held')})`.mapWith(Number),
      failing: sql<boolean>`exists (select ${ofHook('waiting')} and delivery.error is not null)`,
    })
    .from(webhooks)
    .where(eq(webhooks.organisation, organisation))
    .orderBy(desc(sequence))
  return rows.map(({ url: whole, ...row }) => ({ ...row, host: new URL(whole).host }))
}

export type FailureLine = Awaited<ReturnType<typeof listFailures>>[number]

const NEWEST_FAILURES = 20

const ERRORS: Record<(typeof DELIVERY_ERRORS)[number], string> = {
  status: 'it responded with',
  redirect: 'it redirected with',
  timeout: 'no response within 10 s',
  'address-refused': 'its host has an address that is not public',
  tls: 'its certificate is invalid, or it has no TLS',
  unreachable: 'it does not accept connections',
  'event-gone': 'the event was deleted before it was delivered',
}

/** The newest deliveries to an organisation's endpoints whose last attempt failed. */
export async function listFailures(db: Database, organisation: string) {
  const { id, type, status, attempts, error, responseStatus, attemptedAt, due } = webhookDeliveries
  const rows = await db
    .select({ id, type, status, attempts, error, responseStatus, attemptedAt, due, url: webhooks.url })
    .from(webhookDeliveries)
    .innerJoin(webhooks, eq(webhooks.id, webhookDeliveries.webhook))
    .where(and(eq(webhooks.organisation, organisation), isNotNull(error), ne(status, 'delivered')))
    .orderBy(desc(attemptedAt), desc(webhookDeliveries.sequence))
    .limit(NEWEST_FAILURES)
  return rows.map(({ url, error, responseStatus: code, ...row }) => ({
    ...row,
    host: new URL(url).host,
    why: error && (code === null ? ERRORS[error] : `${ERRORS[error]} ${code}`),
    due: row.status === 'waiting' ? row.due : null,
  }))
}
