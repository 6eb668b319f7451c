import { equalBytes } from '@noble/curves/utils.js'
import { checkAmount, checkBlinding, commit, decodeKey, type Opening, subtractAmount } from './commitment.ts'
import { decodeField, encodeField, encodePoint, FIELD, H, multiply } from './grumpkin.ts'
import type { ConfidentialKeys } from './keys.ts'
import { hash, lanes, TAG } from './poseidon.ts'
import type { SpendWitness } from './prover.ts'
import { WalletError } from './wallet-error.ts'

/** Points (64 bytes) and fields (32 bytes) under the names of interface 0.8.0. */
export type Payload = Record<string, Uint8Array>

export interface Encrypted {
  payload: Payload
  /** Opening of `payload.c_spend_new`: the sender's balance once the call has been applied. */
  next: Opening
  witness: SpendWitness
}

export interface Payment {
  keys: ConfidentialKeys
  /** Opening of the spendable commitment at the time of the call. */
  opening: Opening
  /** Base units. */
  amount: bigint
  /** Key of the sender's auditor, 64 bytes. */
  auditorSender: Uint8Array
  /** Freshly random for every proof, even a repeated one: a salt that is used twice reveals the amounts. */
  salt: bigint
}

/**
 * Everything that a transfer publishes except its proof, constraints T1 to T_a9 of the protocol. `viewingKey` is the
 * recipient's and `auditorRecipient` that of the recipient's auditor, 64 bytes each.
 * @throws WalletError `malformed` for an amount out of range or an invalid key, `balance-too-low`, `unspendable`
 */
export function encryptTransfer(
  transfer: Payment & { viewingKey: Uint8Array; auditorRecipient: Uint8Array },
): Encrypted & { transferred: Opening } {
  const { amount, salt } = transfer
  const { witness, next, fields, senderAuditor } = encryptPayment(transfer)
  const receipt = encryptReceipt({ ...transfer, rE: witness.rE, salt, senderSecret: senderAuditor.secret })
  const payload = { ...fields, ...receipt.fields, v_tilde_aud_s: mask(amount, senderAuditor.hideAmount) }
  return { payload, next, witness, transferred: receipt.transferred }
}

/** Everything that a withdrawal publishes except its proof, constraints W1 to W_a5. Throws like `encryptTransfer`. */
export function encryptWithdrawal(withdrawal: Payment): Encrypted {
  const { fields, next, witness } = encryptPayment(withdrawal)
  return { payload: fields, next, witness }
}

/**
 * s = Poseidon2(13, S) with S = secret · key; both coordinates, otherwise a key and its negative would share a secret.
 */
export function sharedSecret(secret: bigint, key: Uint8Array): bigint {
  const { x, y } = multiply(decodeKey(key), secret).toAffine()
  return hash(TAG.sharedSecret, x, y)
}

/** The new balance, for its owner and for the owner's auditor, which every payment from a balance publishes. */
export function encryptPayment({ keys, opening, amount, auditorSender, salt }: Payment) {
  checkBlinding(opening)
  const next = {
    value: subtractAmount(checkAmount(opening.value), amount),
    blinding: hash(TAG.spendBlinding, keys.vk, salt),
  }
  const rE = deriveEphemeral(keys.vk, salt)
  const secret = sharedSecret(rE, auditorSender)
  const [hideAmount, hideBalance, hideBlinding] = lanes(TAG.auditorSender, secret, salt)
  const fields = {
    c_spend_new: encodePoint(commit(next)),
    r_e_point: encodePoint(multiply(H, rE)),
    sigma: encodeField(salt),
    b_tilde: mask(next.value, hash(TAG.balance, keys.vk, salt)),
    b_tilde_aud_s: mask(next.value, hideBalance),
    r_tilde_aud_s: mask(next.blinding, hideBlinding),
  }
  const witness: SpendWitness = { sk: keys.sk, vk: keys.vk, v: opening.value, r: opening.blinding, rE, sigma: salt }
  return { next, fields, witness, senderAuditor: { secret, hideAmount } }
}

/** The part of a transfer that its recipient and the recipient's auditor can decrypt. */
export function encryptReceipt(transfer: {
  amount: bigint
  rE: bigint
  salt: bigint
  viewingKey: Uint8Array
  auditorRecipient: Uint8Array
  auditorSender: Uint8Array
  /** The secret that `rE` shares with the sender's auditor. */
  senderSecret: bigint
}): { fields: Payload; transferred: Opening } {
  const { amount, rE, salt, viewingKey, auditorRecipient, auditorSender, senderSecret } = transfer
  const secret = sharedSecret(rE, viewingKey)
  const transferred = { value: amount, blinding: hash(TAG.transferBlinding, secret, salt) }
  // One auditor usually serves both sides, and its shared secret is the most expensive step.
  const isSame = equalBytes(auditorRecipient, auditorSender)
  const auditorSecret = isSame ? senderSecret : sharedSecret(rE, auditorRecipient)
  const [hideAmount, hideBlinding] = lanes(TAG.auditorRecipient, auditorSecret, salt)
  const fields = {
    c_transfer: encodePoint(commit(transferred)),
    v_tilde: mask(amount, hash(TAG.transferAmount, secret, salt)),
    v_tilde_aud_r: mask(amount, hideAmount),
    r_tilde_aud_r: mask(transferred.blinding, hideBlinding),
  }
  return { fields, transferred }
}

/** The ephemeral secret of a salt, which the owner of `vk` can derive again. */
export function deriveEphemeral(vk: bigint, salt: bigint): bigint {
  const rE = hash(TAG.ephemeral, vk, salt)
  if (rE === 0n) throw new WalletError('malformed', 'this salt gives no ephemeral key')
  return rE
}

export const mask = (value: bigint, by: bigint): Uint8Array => encodeField((value + by) % FIELD)

/** The value that `mask` hid. */
export const unmask = (ciphertext: Uint8Array, by: bigint): bigint => (decodeField(ciphertext) - by + FIELD) % FIELD
