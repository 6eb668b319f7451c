import { equalBytes } from '@noble/curves/utils.js'
import type { DisclosureRole } from '#lib/prover/disclosure-circuits.ts'
import { AMOUNT_LIMIT } from '#lib/wallet/commitment.ts'
import { deriveEphemeral, sharedSecret, unmask } from '#lib/wallet/encryption.ts'
import { decodeField, encodePoint, H, multiply } from '#lib/wallet/grumpkin.ts'
import type { ConfidentialKeys } from '#lib/wallet/keys.ts'
import { hash, lanes, TAG } from '#lib/wallet/poseidon.ts'
import { DisclosureError } from './disclosure-error.ts'
import type { Payment } from './payment.ts'

/** A payment with its amount in base units, and the secrets that prove it. */
export interface OpenedPayment {
  payment: Payment
  value: bigint
  /** for a sender: its spending secret, and the payment's ephemeral secret */
  sk?: bigint | undefined
  rE?: bigint | undefined
}

/** Reads a payment with its recipient's viewing secret; undefined for any other secret. */
export function openAsRecipient(vk: bigint, payment: Payment): OpenedPayment | undefined {
  const mask = hash(TAG.transferAmount, sharedSecret(vk, payment.ephemeralKey), decodeField(payment.salt))
  return opened(payment, unmask(payment.ciphertexts.recipient, mask))
}

/**
 * Reads a payment with the keys of its payer, from the ephemeral secret that a wallet derives from the salt.
 * @param viewingKey of the recipient
 * @throws DisclosureError `not-disclosable` if the payer's wallet chose another ephemeral secret
 */
export function openAsSender(
  keys: Pick<ConfidentialKeys, 'sk' | 'vk'>,
  payment: Payment,
  viewingKey: Uint8Array,
): OpenedPayment {
  const salt = decodeField(payment.salt)
  const rE = deriveEphemeral(keys.vk, salt)
  if (!equalBytes(encodePoint(multiply(H, rE)), payment.ephemeralKey)) throw notDisclosable(payment)
  const mask = hash(TAG.transferAmount, sharedSecret(rE, viewingKey), salt)
  const read = opened(payment, unmask(payment.ciphertexts.recipient, mask))
  if (!read) throw notDisclosable(payment)
  return { ...read, sk: keys.sk, rE }
}

/** Reads a payment with an auditor's secret; undefined for any other secret. */
export function openAsAuditor(
  secret: bigint,
  payment: Payment,
  role: Extract<DisclosureRole, `auditor-${string}`>,
): OpenedPayment | undefined {
  const tag = role === 'auditor-recipient' ? TAG.auditorRecipient : TAG.auditorSender
  const [mask] = lanes(tag, sharedSecret(secret, payment.ephemeralKey), decodeField(payment.salt))
  return opened(payment, unmask(payment.ciphertexts[role], mask))
}

const opened = (payment: Payment, value: bigint): OpenedPayment | undefined =>
  value < AMOUNT_LIMIT ? { payment, value } : undefined

const notDisclosable = ({ transaction }: Payment) =>
  new DisclosureError(
    'not-disclosable',
    `the ephemeral secret of transaction ${transaction} cannot be derived again: only its recipient and the auditors can disclose it`,
  )
