import { createHash, createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'

/** A secret of an endpoint: its id, and a number that each rotation increments. */
interface SecretName {
  id: string
  version: number
}

/** Tells keys apart, and nothing about them. */
export const keyIdOf = (key: Uint8Array): string =>
  createHash('sha256').update('id of a key').update(key).digest('base64url').slice(0, 16)

/**
 * The secret of an endpoint, in the form of Standard Webhooks: `whsec_` and the HMAC-SHA-256 of id and version in base64. It is
 * derived when it is needed, and never stored.
 * @param key of all secrets, 32 bytes
 */
export function webhookSecret(key: Uint8Array, { id, version }: SecretName): string {
  return `whsec_${createHmac('sha256', key).update(`${id} ${version}`).digest('base64')}`
}

interface Signed extends SecretName {
  /** whether the secret before is valid, too */
  isRotating: boolean
}

/** The headers of a request by Standard Webhooks: with two signatures for a day after a rotation. */
export function signedHeaders(
  key: Uint8Array,
  { id, version, isRotating }: Signed,
  message: { id: string; body: string; at: Date },
): Record<string, string> {
  const versions = isRotating ? [version, version - 1] : [version]
  const signatures = versions.map((each) =>
    new Webhook(webhookSecret(key, { id, version: each })).sign(message.id, message.at, message.body),
  )
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(Math.floor(message.at.getTime() / 1000)),
    'webhook-signature': signatures.join(' '),
  }
}
