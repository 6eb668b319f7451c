import { concatBytes } from '@noble/hashes/utils.js'
import type { DelegationEntry } from '#lib/stellar/confidential-token.ts'
import { checkAmount, commit, type Opening, opens, subtractAmount } from './commitment.ts'
import { decryptAllowance } from './decryption.ts'
import {
  deriveEphemeral,
  type Encrypted,
  encryptPayment,
  encryptReceipt,
  mask,
  type Payload,
  type Payment,
  sharedSecret,
} from './encryption.ts'
import { decodeField, encodeField, encodePoint, FIELD, H, liftX, multiply } from './grumpkin.ts'
import { addressToField, type ConfidentialKeys, deriveDelegationKey } from './keys.ts'
import { hash, lanes, TAG } from './poseidon.ts'
import type { SpenderWitness } from './prover.ts'
import { WalletError } from './wallet-error.ts'

/**
 * Everything that `set_spender` publishes except its proof. `amount` moves from the balance into the allowance.
 * @throws WalletError as `encryptTransfer`
 */
export function encryptDelegation(
  delegation: Payment & {
    /** Strkey of the spender, and its spending key (64 bytes). */
    spender: string
    spenderKey: Uint8Array
    /** Freshly random for every proof, like `salt`, and never reused for this spender. */
    allowanceSalt: bigint
  },
): Encrypted & { allowance: Opening } {
  const { keys, amount, spender, spenderKey, allowanceSalt } = delegation
  const { fields, next, witness, senderAuditor } = encryptPayment(delegation)
  const op = addressToField(spender)
  const delegationKey = deriveDelegationKey(keys.vk, spender)
  const { allowance, ciphertext } = encryptAllowance(delegationKey, amount, allowanceSalt)
  const escrowMask = hash(TAG.delegationEscrow, sharedSecret(witness.rE, spenderKey), op)
  const payload = {
    ...fields,
    c_a: encodePoint(commit(allowance)),
    a_tilde: ciphertext,
    sigma_a: encodeField(allowanceSalt),
    escrowed_dvk: concatBytes(fields.r_e_point.subarray(0, 32), mask(delegationKey, escrowMask)),
    v_tilde_aud_s: mask(amount, senderAuditor.hideAmount),
    r_a_tilde_aud_s: mask(allowance.blinding, hash(TAG.allowanceEscrow, senderAuditor.secret, op)),
  }
  return { payload, next, witness, allowance }
}

/** A payment from an allowance, by its spender. */
interface DelegatedTransfer {
  /** The spender's own keys. */
  keys: ConfidentialKeys
  delegationKey: bigint
  /** Opening of the allowance before the call, and its salt. */
  allowance: Opening
  allowanceSalt: bigint
  /** Freshly random for every proof; the contract rejects the previous salt. */
  salt: bigint
  amount: bigint
  viewingKey: Uint8Array
  auditorRecipient: Uint8Array
  /** Key of the auditor of the allowance's owner. */
  auditorSender: Uint8Array
}

/**
 * Everything that `confidential_transfer_from` publishes except its proof. `next` opens the allowance afterwards.
 * @throws WalletError `malformed` for an amount out of range, an invalid key or a salt that is not new, `balance-too-low`
 */
export function encryptDelegatedTransfer(transfer: DelegatedTransfer): {
  payload: Payload
  next: Opening
  transferred: Opening
  witness: SpenderWitness
} {
  const { keys, delegationKey, allowance, amount, salt, auditorSender } = transfer
  if (salt === transfer.allowanceSalt) throw new WalletError('malformed', 'the salt of an allowance must be new')
  const rest = subtractAmount(checkAmount(allowance.value), amount)
  const { allowance: next, ciphertext } = encryptAllowance(delegationKey, rest, salt)
  const rE = deriveEphemeral(keys.vk, salt)
  const senderSecret = sharedSecret(rE, auditorSender)
  const [hideAmount, hideRest, hideBlinding] = lanes(TAG.auditorSender, senderSecret, salt)
  const { fields, transferred } = encryptReceipt({ ...transfer, rE, senderSecret })
  const payload = {
    ...fields,
    c_a_new: encodePoint(commit(next)),
    a_tilde_new: ciphertext,
    sigma_a_new: encodeField(salt),
    r_e_point: encodePoint(multiply(H, rE)),
    v_tilde_aud_s: mask(amount, hideAmount),
    a_tilde_aud_s: mask(rest, hideRest),
    r_tilde_aud_s: mask(next.blinding, hideBlinding),
  }
  const witness = {
    sk: keys.sk,
    dvk: delegationKey,
    vA: allowance.value,
    rA: allowance.blinding,
    vTransfer: amount,
    rE,
  }
  return { payload, next, transferred, witness }
}

/**
 * Opens an allowance with its spender's own keys, from the delegation's entry alone. Undefined for another spender's entry.
 * @throws WalletError `malformed`
 */
export function openDelegation(
  keys: ConfidentialKeys,
  spender: string,
  entry: Omit<DelegationEntry, 'live_until_ledger'>,
): { delegationKey: bigint; allowance: Opening } | undefined {
  const [x, cipher] = [0, 32].map((at) => decodeField(entry.escrowed_dvk.subarray(at, at + 32)))
  if (x === undefined || cipher === undefined) return undefined
  const shared = multiply(liftX(x), keys.sk).toAffine()
  // The escrow has the coordinate of the ephemeral key only, so the secret comes from this point or from its negative.
  for (const y of [shared.y, (FIELD - shared.y) % FIELD]) {
    const escrowMask = hash(TAG.delegationEscrow, hash(TAG.sharedSecret, shared.x, y), addressToField(spender))
    const delegationKey = (cipher - escrowMask + FIELD) % FIELD
    const allowance = decryptAllowance(delegationKey, { ...entry })
    if (allowance && opens(allowance, entry.allowance_commitment)) return { delegationKey, allowance }
  }
  return undefined
}

/** An allowance of `value` under a salt: its opening, and its ciphertext for owner and spender. */
function encryptAllowance(delegationKey: bigint, value: bigint, salt: bigint) {
  const allowance = { value, blinding: hash(TAG.allowanceBlinding, delegationKey, salt) }
  return { allowance, ciphertext: mask(value, hash(TAG.allowance, delegationKey, salt)) }
}
