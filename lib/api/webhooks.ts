import { removedShape } from '#lib/directory/contractors/schema.ts'
import {
  deliveriesQuery,
  deliveriesShape,
  deliveryShape,
  listDeliveries,
  redeliver,
} from '#lib/events/delivery-list.ts'
import { testWebhook, trialShape } from '#lib/events/trial.ts'
import {
  createWebhook,
  listWebhooks,
  newWebhook,
  presentCreatedWebhook,
  removeWebhook,
  rotateSecret,
  secretWebhookShape,
  webhooksShape,
} from '#lib/events/webhooks.ts'
import { DELIVERY_EXAMPLE, EXAMPLE, PAGE_EXAMPLE, WEBHOOK_EXAMPLE } from './examples.ts'
import { inGroup, operation, respondWithPage } from './operation.ts'

const { url, types } = WEBHOOK_EXAMPLE
const parameters = { id: { description: 'id of the webhook', example: EXAMPLE.webhookId } }
const secret = EXAMPLE.webhookSecret

export const WEBHOOK_OPERATIONS = inGroup('Webhooks', [
  operation({
    id: 'listWebhooks',
    route: 'GET /webhooks',
    caller: 'employer',
    extension: true,
    summary: 'List your webhooks, newest first',
    response: {
      description: 'All webhooks, at most 10',
      schema: webhooksShape,
      example: { webhooks: [WEBHOOK_EXAMPLE] },
    },
    handle: async (context) => ({ webhooks: await listWebhooks(context) }),
  }),
  operation({
    id: 'createWebhook',
    route: 'POST /webhooks',
    caller: 'founder',
    extension: true,
    summary: 'Add a webhook',
    description: [
      'Events that happen from now on are posted to the URL, signed by the Standard Webhooks specification. The secret is in no other',
      'response.',
    ].join(' '),
    body: { schema: newWebhook, example: { url, types } },
    response: {
      description: 'The webhook and its secret',
      schema: secretWebhookShape,
      example: { ...WEBHOOK_EXAMPLE, secret },
    },
    refusals: ['webhook-not-found', 'webhooks-full', 'organisation-dissolved'],
    idempotent: presentCreatedWebhook,
    handle: (context) => createWebhook(context, context.body),
  }),
  operation({
    id: 'removeWebhook',
    route: 'DELETE /webhooks/{id}',
    caller: 'employer',
    extension: true,
    summary: 'Delete a webhook',
    description: 'Its deliveries are deleted, too, including those not sent yet.',
    parameters,
    response: { description: 'The webhook is deleted', schema: removedShape, example: { id: EXAMPLE.webhookId } },
    refusals: ['webhook-not-found'],
    handle: (context) => removeWebhook(context, context.params.id),
  }),
  operation({
    id: 'testWebhook',
    route: 'POST /webhooks/{id}/test',
    caller: 'employer',
    extension: true,
    summary: 'Send a test event now',
    description: [
      'Posts an event of the type `webhook.test` without data once, and returns the endpoint’s response. A disabled webhook that delivers',
      'it is enabled again, and gets the events that it missed, except the one that failed. One that retries events gets them at once.',
    ].join(' '),
    parameters,
    response: {
      description: 'The response of the endpoint',
      schema: trialShape,
      example: { delivered: true, responseStatus: 204, response: '', durationMs: 84 },
    },
    refusals: ['webhook-not-found'],
    handle: (context) => testWebhook(context, context.params.id),
  }),
  operation({
    id: 'rotateWebhookSecret',
    route: 'POST /webhooks/{id}/secret',
    caller: 'employer',
    extension: true,
    summary: 'Rotate the secret of a webhook',
    description: [
      'For a day, requests have two signatures: by the new secret and by the one before. A further rotation within that day ends the',
      'oldest one at once.',
    ].join(' '),
    parameters,
    response: {
      description: 'The webhook and its new secret',
      schema: secretWebhookShape,
      example: { ...WEBHOOK_EXAMPLE, previousUntil: '2026-03-03T09:00:00.000Z', secret },
    },
    refusals: ['webhook-not-found'],
    idempotent: presentCreatedWebhook,
    handle: (context) => rotateSecret(context, context.params.id),
  }),
  operation({
    id: 'listWebhookDeliveries',
    route: 'GET /webhooks/{id}/deliveries',
    caller: 'employer',
    extension: true,
    summary: 'List the deliveries of a webhook, newest first',
    description: 'Deliveries are kept for 30 days.',
    parameters,
    query: { schema: deliveriesQuery, example: PAGE_EXAMPLE },
    response: {
      description: 'Up to 1,000 deliveries, or `limit`',
      schema: deliveriesShape,
      example: { deliveries: [DELIVERY_EXAMPLE] },
      paged: 'link',
    },
    refusals: ['webhook-not-found'],
    handle: async (context) => {
      const page = await listDeliveries(context, { id: context.params.id, ...context.query })
      return respondWithPage(context.request, page, { deliveries: page.items })
    },
  }),
  operation({
    id: 'redeliver',
    route: 'POST /webhooks/{id}/deliveries/{delivery}/redeliver',
    caller: 'employer',
    extension: true,
    summary: 'Send an event again',
    description:
      'It is sent within seconds, with the same id, or once the earlier events of its batch are delivered. One that waits for its next attempt is sent now.',
    parameters: {
      ...parameters,
      delivery: { description: 'id of the delivery', example: EXAMPLE.deliveryId },
    },
    response: {
      description: 'The delivery, which waits to be sent',
      schema: deliveryShape,
      example: { ...DELIVERY_EXAMPLE, status: 'waiting', attempts: 0, due: EXAMPLE.paid, endedAt: undefined },
    },
    refusals: ['webhook-not-found', 'delivery-not-found', 'webhook-disabled'],
    handle: (context) => redeliver(context, context.params),
  }),
])
