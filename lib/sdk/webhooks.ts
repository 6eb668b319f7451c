/** For the servers that the service posts events to. */
import { Webhook } from 'standardwebhooks'
import type { PayrollEvent } from './watch.ts'

export type { PayrollEvent } from './watch.ts'

/** An event as it is posted. A test has no data. */
export type WebhookEvent = Omit<PayrollEvent, 'type'> & { type: PayrollEvent['type'] | 'webhook.test' }

/** The headers of a request: those of `fetch`, or of node:http. */
type RequestHeaders = Headers | Readonly<Record<string, string | string[] | undefined>>

/** The request was not signed with this secret within the last five minutes. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
}

/**
 * Checks that the service has signed a request within the last five minutes (Standard Webhooks), and returns the event. Events come
 * at least once and may come out of order: store each under its id, which is also the header `webhook-id`.
 * @param secret `whsec_…`, as `POST /webhooks` returned it. After a rotation, the old one and the new one both verify for a day.
 * @param request its body byte for byte as it was received, and its headers
 * @throws WebhookError
 */
export function verifyWebhook(secret: string, request: { body: string; headers: RequestHeaders }): WebhookEvent {
  const { body, headers } = request
  const webhook = new Webhook(secret)
  const entries = headers instanceof Headers ? headers : Object.entries(headers)
  const flat = Object.fromEntries(Array.from(entries, ([name, value]) => [name, String(value)]))
  try {
    return webhook.verify(body, flat) as WebhookEvent
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'it is no event'
    throw new WebhookError(`the request is not from the service: ${reason}`, { cause })
  }
}
