import { permute, poseidon2Hash } from '@zkpassport/poseidon2'
import { FIELD } from './grumpkin.ts'

/** Domain tags of the protocol, always absorbed first. A tag serves one purpose and one mode (hash or lanes) only. */
export const TAG = {
  address: 1n,
  viewingKey: 2n,
  delegationKey: 3n,
  spendBlinding: 4n,
  transferBlinding: 5n,
  transferAmount: 6n,
  balance: 7n,
  allowance: 8n,
  allowanceBlinding: 9n,
  delegationEscrow: 10n,
  auditorSender: 11n,
  auditorRecipient: 12n,
  sharedSecret: 13n,
  ephemeral: 14n,
  disclosedTotal: 15n,
  disclosedValue: 16n,
  allowanceEscrow: 17n,
} as const

/** Poseidon2 over the coordinate field. @throws RangeError for an input that is not a canonical field element */
export function hash(tag: bigint, ...inputs: bigint[]): bigint {
  return poseidon2Hash([tag, ...inputs.map(canonical)])
}

/**
 * Three masks from one permutation, for the auditors' channels: the first hides an amount, the second a balance or a
 * transfer's blinding, the third the blinding of the new balance. The recipient's auditor gets the first two only.
 */
export function lanes(tag: bigint, secret: bigint, salt: bigint): [bigint, bigint, bigint] {
  const [first, second, third] = permute([tag, canonical(secret), canonical(salt), 3n << 64n])
  if (first === undefined || second === undefined || third === undefined) throw new Error('Poseidon2 has width four')
  return [first, second, third]
}

/** The library would reduce an input silently, so two inputs would share a hash. */
function canonical(input: bigint): bigint {
  if (input < 0n || input >= FIELD) throw new RangeError('a Poseidon2 input is a field element')
  return input
}
