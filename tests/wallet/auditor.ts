import { AMOUNT_LIMIT, type Opening } from '#lib/wallet/commitment.ts'
import type { Fields } from '#lib/wallet/decryption.ts'
import { sharedSecret } from '#lib/wallet/encryption.ts'
import { decodeField, FIELD } from '#lib/wallet/grumpkin.ts'
import { lanes, TAG } from '#lib/wallet/poseidon.ts'

/**
 * The opening that the recipient's auditor reads with its secret: the same as the recipient's. Undefined for another's
 * secret.
 */
export function auditRecipient(secret: bigint, fields: Fields): Opening | undefined {
  const [hideAmount, hideBlinding] = masksOf(TAG.auditorRecipient, secret, fields)
  const value = unmask(fields, 'v_tilde_aud_r', hideAmount)
  return value < AMOUNT_LIMIT ? { value, blinding: unmask(fields, 'r_tilde_aud_r', hideBlinding) } : undefined
}

/**
 * The values that the sender's auditor reads with its secret: the sender's new balance, its blinding, and for a
 * transfer, the amount. Undefined for another's secret.
 */
export function auditSender(secret: bigint, fields: Fields) {
  const [hideAmount, hideBalance, hideBlinding] = masksOf(TAG.auditorSender, secret, fields)
  const balance = unmask(fields, 'b_tilde_aud_s', hideBalance)
  if (balance >= AMOUNT_LIMIT) return undefined
  const blinding = unmask(fields, 'r_tilde_aud_s', hideBlinding)
  return {
    balance,
    blinding,
    ...('v_tilde_aud_s' in fields && { amount: unmask(fields, 'v_tilde_aud_s', hideAmount) }),
  }
}

function masksOf(tag: bigint, secret: bigint, fields: Fields) {
  return lanes(tag, sharedSecret(secret, bytesOf(fields, 'r_e_point')), decodeField(bytesOf(fields, 'sigma')))
}

function unmask(fields: Fields, name: string, mask: bigint): bigint {
  return (decodeField(bytesOf(fields, name)) - mask + FIELD) % FIELD
}

function bytesOf(fields: Fields, name: string): Uint8Array {
  const value = fields[name]
  if (!(value instanceof Uint8Array)) throw new Error(`the field ${name} is missing`)
  return value
}
