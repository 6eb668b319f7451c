import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { DELIVERY_ERRORS, webhooks } from '#drizzle/schema/webhooks.ts'
import { transactFor } from '#lib/db/connection.ts'
import { IS_ROTATING, sendMessage } from './delivery.ts'
import { enable, hasten } from './disabling.ts'
import { ownWebhook, type WebhooksContext, webhookNotFound } from './webhooks.ts'

export const trialShape = z.object({
  delivered: z.boolean().meta({ description: 'whether the response was a 2xx' }),
  enabled: z.boolean().optional().meta({ description: 'true if the endpoint was disabled before' }),
  error: z.enum(DELIVERY_ERRORS).optional(),
  responseStatus: z.int().optional(),
  response: z.string().optional().meta({ description: 'the beginning of the response’s body' }),
  durationMs: z.int(),
})

/**
 * Sends an endpoint an event of the type `webhook.test` now. If that succeeds, a disabled endpoint is enabled again, and deliveries that
 * wait for their next attempt are sent at once.
 * @throws Refusal `webhook-not-found`
 */
export async function testWebhook(
  { db, employer, now, service }: WebhooksContext,
  id: string,
): Promise<z.output<typeof trialShape>> {
  const { url, secretVersion: version } = webhooks
  const columns = { url, version, isRotating: IS_ROTATING, disabledAt: webhooks.disabledAt }
  const [hook] = await db.select(columns).from(webhooks).where(ownWebhook(employer, id))
  if (!hook) throw webhookNotFound()
  const event = { id: `test-${randomUUID()}`, type: 'webhook.test', createdAt: now.toISOString(), data: {} }
  const began = performance.now()
  const { error, status: responseStatus, text: response } = await sendMessage(service.webhooks, { id, ...hook }, event)
  const durationMs = Math.round(performance.now() - began)
  const delivered = error === undefined
  const isEnabling = delivered && hook.disabledAt !== null
  const enabled =
    isEnabling && (await transactFor(db, employer.organisation, (tx) => enable(tx, id, employer.actor, now)))
  if (delivered && !isEnabling) await hasten(db, id)
  return {
    delivered,
    ...(enabled && { enabled }),
    ...(error !== undefined && { error }),
    ...(responseStatus !== undefined && { responseStatus }),
    ...(response !== undefined && { response }),
    durationMs,
  }
}
