import { checkAmount, checkBlinding, commit, decodeKey, type Opening, subtractAmount } from './commitment.ts'
import { encodeField, encodePoint, FIELD, H, multiply } from './grumpkin.ts'
import type { ConfidentialKeys } from './keys.ts'
import { hash, lanes, TAG } from './poseidon.ts'
import type { SpendWitness } from './prover.ts'
import { WalletError } from './wallet-error.ts'

/** Points (64 bytes) and fields (32 bytes) under the names of interface 0.8.0. */
export type Payload = Record<string, Uint8Array>

interface Encrypted {
  payload: Payload
  /** Opening of `payload.c_spend_new`: the sender's balance once the call has been applied. */
  next: Opening
  witness: SpendWitness
}

interface Spend {
  keys: ConfidentialKeys
  /** Of the spendable commitment as the call will find it. */
  opening: Opening
  /** Base units. */
  amount: bigint
  /** Key of the sender's auditor, 64 bytes. */
  auditorSender: Uint8Array
  /** Fresh in every attempt, also after one that failed: a salt used twice uncovers the amounts. */
  salt: bigint
}

/**
 * Everything that a transfer publishes except its proof, constraints T1 to T_a9 of the protocol. `viewingKey` is the
 * recipient's and `auditorRecipient` that of the recipient's auditor, 64 bytes each.
 *
 * WalletError `malformed` for an amount out of range or for a key that is not valid, `balance-too-low` if the balance does not cover it.
 */
export function encryptTransfer(
  transfer: Spend & { viewingKey: Uint8Array; auditorRecipient: Uint8Array },
): Encrypted & { transferred: Opening } {
  const { amount, salt } = transfer
  const { witness, next, fields, senderAuditor } = spend(transfer)
  const secret = sharedSecret(witness.rE, transfer.viewingKey)
  const transferred = { value: amount, blinding: hash(TAG.transferBlinding, secret, salt) }
  // Most often one auditor serves both sides, and its shared secret is the dearest step of all.
  const recipientAuditor =
    Buffer.compare(transfer.auditorRecipient, transfer.auditorSender) === 0
      ? senderAuditor.secret
      : sharedSecret(witness.rE, transfer.auditorRecipient)
  const [hideAmount, hideBlinding] = lanes(TAG.auditorRecipient, recipientAuditor, salt)
  const payload = {
    ...fields,
    c_transfer: encodePoint(commit(transferred)),
    v_tilde: mask(amount, hash(TAG.transferAmount, secret, salt)),
    v_tilde_aud_r: mask(amount, hideAmount),
    r_tilde_aud_r: mask(transferred.blinding, hideBlinding),
    v_tilde_aud_s: mask(amount, senderAuditor.hideAmount),
  }
  return { payload, next, witness, transferred }
}

/** Everything that a withdrawal publishes except its proof, constraints W1 to W_a5; refuses as `encryptTransfer`. */
export function encryptWithdrawal(withdrawal: Spend): Encrypted {
  const { fields, next, witness } = spend(withdrawal)
  return { payload: fields, next, witness }
}

/** s = Poseidon2(13, S) with S = secret · key; both coordinates, else a key and its negative would share a secret. */
export function sharedSecret(secret: bigint, key: Uint8Array): bigint {
  const { x, y } = multiply(decodeKey(key), secret).toAffine()
  return hash(TAG.sharedSecret, x, y)
}

/** The common part of transfer and withdrawal: the new balance, for its owner and for the owner's auditor. */
function spend({ keys, opening, amount, auditorSender, salt }: Spend) {
  checkBlinding(opening)
  const next = {
    value: subtractAmount(checkAmount(opening.value), amount),
    blinding: hash(TAG.spendBlinding, keys.vk, salt),
  }
  const rE = hash(TAG.ephemeral, keys.vk, salt)
  if (rE === 0n) throw new WalletError('malformed', 'this salt gives no ephemeral key')
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

const mask = (value: bigint, by: bigint): Uint8Array => encodeField((value + by) % FIELD)
