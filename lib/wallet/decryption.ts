import { AMOUNT_LIMIT, type Opening } from './commitment.ts'
import { sharedSecret, unmask } from './encryption.ts'
import { decodeField } from './grumpkin.ts'
import { hash, TAG } from './poseidon.ts'
import { WalletError } from './wallet-error.ts'

/** The fields of a payload or of an event, by their names on the wire. Every variant's names are understood. */
export type Fields = Readonly<Record<string, unknown>>

/**
 * The opening that a transfer added to its recipient's receiving balance, from the recipient's `vk`. Undefined for
 * another key: an amount decrypted with it is less than 2^127 only once in 2^127 times.
 */
export function decryptTransfer(vk: bigint, fields: Fields): Opening | undefined {
  const secret = sharedSecret(vk, bytesOf(fields, 'r_e_point', 'r_e'))
  const salt = saltOf(fields)
  const value = unmask(bytesOf(fields, 'v_tilde'), hash(TAG.transferAmount, secret, salt))
  return plausible({ value, blinding: hash(TAG.transferBlinding, secret, salt) })
}

/** The sender's balance after a transfer, a withdrawal or a delegation, from the sender's `vk`; undefined for another key. */
export function decryptBalance(vk: bigint, fields: Fields): Opening | undefined {
  const salt = fieldOf(fields, 'sigma')
  const value = unmask(bytesOf(fields, 'b_tilde'), hash(TAG.balance, vk, salt))
  return plausible({ value, blinding: hash(TAG.spendBlinding, vk, salt) })
}

/**
 * The opening of an allowance, from the key of its delegation and the fields `a_tilde` and `allowance_salt`, which the
 * delegation's entry and the event of its revocation contain. Undefined for another delegation's key.
 */
export function decryptAllowance(delegationKey: bigint, fields: Fields): Opening | undefined {
  const salt = fieldOf(fields, 'allowance_salt')
  const value = unmask(bytesOf(fields, 'a_tilde'), hash(TAG.allowance, delegationKey, salt))
  return plausible({ value, blinding: hash(TAG.allowanceBlinding, delegationKey, salt) })
}

/** The salt of a transfer. A spender's is the allowance's new salt. */
export const saltOf = (fields: Fields): bigint => fieldOf(fields, 'sigma', 'sigma_a_new')

const plausible = (opening: Opening): Opening | undefined => (opening.value < AMOUNT_LIMIT ? opening : undefined)

const fieldOf = (fields: Fields, ...names: string[]): bigint => decodeField(bytesOf(fields, ...names))

/** The first of these fields that is present; WalletError `malformed` if none is. */
function bytesOf(fields: Fields, ...names: string[]): Uint8Array {
  for (const name of names) {
    const value = fields[name]
    if (value instanceof Uint8Array) return value
  }
  throw new WalletError('malformed', `the field ${names[0]} is missing`)
}
