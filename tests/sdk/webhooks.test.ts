import { expect, test } from 'vitest'
import { signedHeaders, webhookSecret } from '#lib/events/signature.ts'
import { verifyWebhook, WebhookError } from '#lib/sdk/webhooks.ts'

const KEY = new Uint8Array(32).fill(7)
const NAME = { id: '0d9b5c52-7f2e-4b6b-8a52-8c1f3a9e7d20', version: 2 }
const SECRET = webhookSecret(KEY, NAME)
const event = { id: '1-a', type: 'payout.paid', createdAt: '2026-03-02T09:00:00.000Z', data: { status: 'paid' } }
const body = JSON.stringify(event)

const sign = ({ at = new Date(), isRotating = false } = {}) =>
  signedHeaders(KEY, { ...NAME, isRotating }, { id: event.id, body, at })

test('returns the event of a signed request, with the headers of fetch or of node:http', () => {
  const headers = sign()
  expect(verifyWebhook(SECRET, { body, headers: new Headers(headers) })).toEqual(event)
  expect(
    verifyWebhook(SECRET, { body, headers: { ...headers, host: 'erp.example', 'set-cookie': ['a', 'b'] } }),
  ).toEqual(event)
})

test('verifies with the secret before or after a rotation', () => {
  const headers = sign({ isRotating: true })
  for (const version of [1, 2]) {
    expect(verifyWebhook(webhookSecret(KEY, { ...NAME, version }), { body, headers })).toEqual(event)
  }
  expect(() => verifyWebhook(webhookSecret(KEY, { ...NAME, version: 1 }), { body, headers: sign() })).toThrow(
    WebhookError,
  )
})

test.each<[string, () => { body: string; headers: Record<string, string> }]>([
  ['another body', () => ({ body: body.replace('paid', 'sent'), headers: sign() })],
  ['another id', () => ({ body, headers: { ...sign(), 'webhook-id': '2-b' } })],
  ['a later timestamp', () => ({ body, headers: { ...sign(), 'webhook-timestamp': '1772442301' } })],
  ['a request of six minutes ago', () => ({ body, headers: sign({ at: new Date(Date.now() - 360_000) }) })],
  ['no signature', () => ({ body, headers: { ...sign(), 'webhook-signature': '' } })],
  ['no headers', () => ({ body, headers: {} })],
])('rejects %s', (_, request) => {
  expect(() => verifyWebhook(SECRET, request())).toThrow(WebhookError)
})
