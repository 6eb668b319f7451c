import { concatBytes } from '@noble/hashes/utils.js'
import { decodePoint, encodeField } from './grumpkin.ts'
import { addressToField } from './keys.ts'
import type { Statement } from './prover.ts'

type Circuit = Statement['circuit']

/** The circuits of the token, each under its number in the verifier of the network. */
export const CIRCUIT_TYPES = {
  register: 0,
  withdraw: 1,
  transfer: 2,
  spender_transfer: 3,
  set_spender: 4,
} as const satisfies Record<Circuit, number>

/**
 * A public input: 32 bytes for a field element, 64 otherwise. A key is a point other than the identity; a pair isn't a
 * point.
 */
type Kind = 'field' | 'point' | 'key' | 'pair'

/** The public inputs of each circuit by their names, in the order that the network's verifier expects. */
const PUBLIC_INPUTS: Readonly<Record<Circuit, readonly (readonly [string, Kind])[]>> = {
  register: [
    ['y', 'key'],
    ['pvk', 'key'],
    ['addr_f', 'field'],
    ['acct_f', 'field'],
  ],
  transfer: [
    ['c_spend', 'point'],
    ['y', 'key'],
    ['pvk_b', 'key'],
    ['addr_f', 'field'],
    ['k_aud_r', 'key'],
    ['k_aud_s', 'key'],
    ['c_spend_new', 'point'],
    ['c_transfer', 'point'],
    ['r_e_point', 'key'],
    ['v_tilde', 'field'],
    ['b_tilde', 'field'],
    ['sigma', 'field'],
    ['v_tilde_aud_r', 'field'],
    ['r_tilde_aud_r', 'field'],
    ['v_tilde_aud_s', 'field'],
    ['b_tilde_aud_s', 'field'],
    ['r_tilde_aud_s', 'field'],
  ],
  withdraw: [
    ['c_spend', 'point'],
    ['y', 'key'],
    ['addr_f', 'field'],
    ['k_aud_s', 'key'],
    ['amount', 'field'],
    ['c_spend_new', 'point'],
    ['sigma', 'field'],
    ['b_tilde', 'field'],
    ['r_e_point', 'key'],
    ['b_tilde_aud_s', 'field'],
    ['r_tilde_aud_s', 'field'],
  ],
  set_spender: [
    ['c_spend', 'point'],
    ['y', 'key'],
    ['y_op', 'key'],
    ['op', 'field'],
    ['addr_f', 'field'],
    ['k_aud_s', 'key'],
    ['c_spend_new', 'point'],
    ['c_a', 'point'],
    ['escrowed_dvk', 'pair'],
    ['b_tilde', 'field'],
    ['a_tilde', 'field'],
    ['sigma', 'field'],
    ['sigma_a', 'field'],
    ['r_e_point', 'key'],
    ['v_tilde_aud_s', 'field'],
    ['b_tilde_aud_s', 'field'],
    ['r_tilde_aud_s', 'field'],
    ['r_a_tilde_aud_s', 'field'],
  ],
  spender_transfer: [
    ['c_a', 'point'],
    ['sigma_a', 'field'],
    ['y_op', 'key'],
    ['pvk_b', 'key'],
    ['k_aud_r', 'key'],
    ['k_aud_s', 'key'],
    ['c_a_new', 'point'],
    ['c_transfer', 'point'],
    ['r_e_point', 'key'],
    ['v_tilde', 'field'],
    ['a_tilde_new', 'field'],
    ['sigma_a_new', 'field'],
    ['v_tilde_aud_r', 'field'],
    ['r_tilde_aud_r', 'field'],
    ['v_tilde_aud_s', 'field'],
    ['a_tilde_aud_s', 'field'],
    ['r_tilde_aud_s', 'field'],
  ],
}

const bytesOf = (kind: Kind): number => (kind === 'field' ? 32 : 64)

/** The size of a circuit's public inputs in bytes. */
export function publicInputBytes(circuit: Circuit): number {
  return PUBLIC_INPUTS[circuit].reduce((total, [, kind]) => total + bytesOf(kind), 0)
}

/**
 * The public inputs of a proof as bytes, in the order that the network's verifier expects. A payload of an older interface
 * lacks the last field.
 */
export function publicInputs(statement: Statement): Uint8Array {
  const values = valuesOf(statement)
  return concatBytes(...PUBLIC_INPUTS[statement.circuit].flatMap(([name]) => values[name] ?? []))
}

/** Whether every point is on the curve and every key differs from the identity, which every true statement guarantees. */
export function hasValidPoints(circuit: Circuit, inputs: Uint8Array): boolean {
  let offset = 0
  return PUBLIC_INPUTS[circuit].every(([, kind]) => {
    const content = inputs.subarray(offset, offset + bytesOf(kind))
    offset += bytesOf(kind)
    return kind === 'field' || kind === 'pair' || isPoint(content, kind)
  })
}

function isPoint(content: Uint8Array, kind: 'point' | 'key'): boolean {
  try {
    return !decodePoint(content).is0() || kind === 'point'
  } catch {
    return false
  }
}

function valuesOf(statement: Statement): Readonly<Record<string, Uint8Array>> {
  if (statement.circuit === 'spender_transfer') {
    const { payload, spenderKey, viewingKey, allowance: c_a, allowanceSalt: sigma_a } = statement
    const { auditorRecipient: k_aud_r, auditorSender: k_aud_s } = statement
    return { ...payload, c_a, sigma_a, y_op: spenderKey, pvk_b: viewingKey, k_aud_r, k_aud_s }
  }
  const addr_f = encodeField(addressToField(statement.token))
  if (statement.circuit === 'register') {
    const { y, pvk, account } = statement
    return { y, pvk, addr_f, acct_f: encodeField(addressToField(account)) }
  }
  const { payload, spendable: c_spend, spendingKey: y, auditorSender: k_aud_s } = statement
  const payment = { ...payload, addr_f, c_spend, y, k_aud_s }
  if (statement.circuit === 'withdraw') return { ...payment, amount: encodeField(statement.amount) }
  if (statement.circuit === 'set_spender') {
    return { ...payment, y_op: statement.spenderKey, op: encodeField(addressToField(statement.spender)) }
  }
  return { ...payment, pvk_b: statement.viewingKey, k_aud_r: statement.auditorRecipient }
}
