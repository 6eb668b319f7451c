import { AMOUNT_LIMIT, type Opening } from '#lib/wallet/commitment.ts'
import type { Fields } from '#lib/wallet/decryption.ts'
import { sharedSecret, unmask } from '#lib/wallet/encryption.ts'
import { decodeField } from '#lib/wallet/grumpkin.ts'
import { addressToField } from '#lib/wallet/keys.ts'
import { hash, lanes, TAG } from '#lib/wallet/poseidon.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'

/** The amount of a payment with its blinding, from the recipient's channel. */
export type ChannelReading = Opening

/** An outgoing operation, from the sender's channel. */
export interface AuditedBalance {
  /** absent for a withdrawal, whose amount is public */
  amount: bigint | undefined
  /** the payer's spendable balance afterwards; undefined where a delegation pays */
  balance: Opening | undefined
  /** the rest of the delegation afterwards */
  allowance: Opening | undefined
}

/** The field with the salt: of a delegated payment, the allowance's new one. */
const saltOf = (fields: Fields) => ('sigma_a_new' in fields ? 'sigma_a_new' : 'sigma')

/** Reads the recipient's channel with the first secret that it was encrypted to. */
export function readPayee(secrets: readonly bigint[], fields: Fields): ChannelReading | undefined {
  for (const secret of secrets) {
    const read = masksOf(TAG.auditorRecipient, secret, fields)
    const [value, blinding] = [valueIn(fields, 'v_tilde_aud_r', read?.[0]), valueIn(fields, 'r_tilde_aud_r', read?.[1])]
    if (value !== undefined && blinding !== undefined && value < AMOUNT_LIMIT) return { value, blinding }
  }
  return undefined
}

/**
 * Reads the sender's channel with the first secret that it was encrypted to.
 * @param delegate the spender (G… or C…) of a `set_spender`, whose allowance has a blinding in the event
 */
export function readPayer(secrets: readonly bigint[], fields: Fields, delegate?: string): AuditedBalance | undefined {
  for (const secret of secrets) {
    const read = readSecretly(secret, fields, delegate)
    if (read) return read
  }
  return undefined
}

function readSecretly(secret: bigint, fields: Fields, delegate: string | undefined): AuditedBalance | undefined {
  const masks = masksOf(TAG.auditorSender, secret, fields)
  const isDelegated = 'a_tilde_aud_s' in fields
  const rest = valueIn(fields, isDelegated ? 'a_tilde_aud_s' : 'b_tilde_aud_s', masks?.[1])
  const blinding = valueIn(fields, 'r_tilde_aud_s', masks?.[2])
  // With another secret, the value is in range only once in 2^127 times.
  if (rest === undefined || blinding === undefined || rest >= AMOUNT_LIMIT) return undefined
  const after = { value: rest, blinding }
  const amount = valueIn(fields, 'v_tilde_aud_s', masks?.[0])
  if (isDelegated) return { amount, balance: undefined, allowance: after }
  const allowance = delegate === undefined ? undefined : readAllowance(secret, fields, delegate, amount)
  return { amount, balance: after, allowance }
}

/** The opening of a new delegation. Its blinding has a separate mask. */
function readAllowance(
  secret: bigint,
  fields: Fields,
  spender: string,
  value: bigint | undefined,
): Opening | undefined {
  const escrow = shareWith(secret, fields)
  if (escrow === undefined) return undefined
  const blinding = valueIn(fields, 'r_a_tilde_aud_s', hash(TAG.allowanceEscrow, escrow, addressToField(spender)))
  return value === undefined || blinding === undefined ? undefined : { value, blinding }
}

function masksOf(tag: bigint, secret: bigint, fields: Fields): [bigint, bigint, bigint] | undefined {
  const own = shareWith(secret, fields)
  const salt = fieldIn(fields, saltOf(fields))
  return own === undefined || salt === undefined ? undefined : lanes(tag, own, salt)
}

/** Both channels of an event share one ephemeral key, and a multiplication takes milliseconds. */
const shared = new WeakMap<Fields, Map<bigint, bigint | undefined>>()

function shareWith(secret: bigint, fields: Fields): bigint | undefined {
  const ofEvent = shared.get(fields) ?? new Map<bigint, bigint | undefined>()
  shared.set(fields, ofEvent)
  const key = fields.r_e_point
  if (!ofEvent.has(secret)) {
    ofEvent.set(secret, key instanceof Uint8Array ? attempt(() => sharedSecret(secret, key)) : undefined)
  }
  return ofEvent.get(secret)
}

function valueIn(fields: Fields, name: string, mask: bigint | undefined): bigint | undefined {
  const ciphertext = fields[name]
  return ciphertext instanceof Uint8Array && mask !== undefined ? attempt(() => unmask(ciphertext, mask)) : undefined
}

function fieldIn(fields: Fields, name: string): bigint | undefined {
  const value = fields[name]
  return value instanceof Uint8Array ? attempt(() => decodeField(value)) : undefined
}

/** An event with an invalid point or field cannot be read. That isn't the auditor's error. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof WalletError) return undefined
    throw error
  }
}
