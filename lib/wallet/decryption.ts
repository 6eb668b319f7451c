import { AMOUNT_LIMIT, type Opening } from './commitment.ts'
import { sharedSecret } from './encryption.ts'
import { decodeField, FIELD } from './grumpkin.ts'
import { hash, TAG } from './poseidon.ts'
import { WalletError } from './wallet-error.ts'

/** The fields of a payload or of an event, by their names on the wire. Every variant's names are understood. */
export type Fields = Readonly<Record<string, unknown>>

/**
 * The amount that a transfer brought its recipient, and the blinding that comes with it, read with the recipient's
 * `vk`. Undefined if the key is another's: an amount decrypted with it falls below 2^127 once in 2^127 times.
 */
export function decryptTransfer(vk: bigint, fields: Fields): Opening | undefined {
  const secret = sharedSecret(vk, bytesOf(fields, 'r_e_point', 'r_e'))
  const salt = fieldOf(fields, ...SALTS)
  const value = unmask(fields, hash(TAG.transferAmount, secret, salt), 'v_tilde')
  return plausible({ value, blinding: hash(TAG.transferBlinding, secret, salt) })
}

/** The balance that a transfer or withdrawal left its sender, from the sender's `vk`; undefined if it is another's. */
export function decryptBalance(vk: bigint, fields: Fields): Opening | undefined {
  const salt = fieldOf(fields, 'sigma')
  const value = unmask(fields, hash(TAG.balance, vk, salt), 'b_tilde')
  return plausible({ value, blinding: hash(TAG.spendBlinding, vk, salt) })
}

/** A spender's transfer is salted by the allowance's new salt. */
const SALTS = ['sigma', 'sigma_a_new'] as const

const plausible = (opening: Opening): Opening | undefined => (opening.value < AMOUNT_LIMIT ? opening : undefined)

const unmask = (fields: Fields, by: bigint, ...names: string[]): bigint =>
  (fieldOf(fields, ...names) - by + FIELD) % FIELD

const fieldOf = (fields: Fields, ...names: string[]): bigint => decodeField(bytesOf(fields, ...names))

/** The first of these names that is there; WalletError `malformed` if none is. */
function bytesOf(fields: Fields, ...names: string[]): Uint8Array {
  for (const name of names) {
    const value = fields[name]
    if (value instanceof Uint8Array) return value
  }
  throw new WalletError('malformed', `the field ${names[0]} is missing`)
}
