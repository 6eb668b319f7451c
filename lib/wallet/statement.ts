import { encodeField } from './grumpkin.ts'
import { addressToField } from './keys.ts'
import type { Statement } from './prover.ts'

type Circuit = Statement['circuit']

/** The circuits of the token, each under its number in the verifier of the network. */
export const CIRCUIT_TYPES = { register: 0, withdraw: 1, transfer: 2 } as const satisfies Record<Circuit, number>

/** Bytes of the public inputs: 32 for a field element, 64 for a point. */
export const PUBLIC_INPUT_BYTES = { register: 6 * 32, withdraw: 16 * 32, transfer: 25 * 32 } as const satisfies Record<
  Circuit,
  number
>

/** The payload's part of the public inputs of a transfer. A payload of an older interface lacks the last field. */
const TRANSFERRED = [
  'c_spend_new',
  'c_transfer',
  'r_e_point',
  'v_tilde',
  'b_tilde',
  'sigma',
  'v_tilde_aud_r',
  'r_tilde_aud_r',
  'v_tilde_aud_s',
  'b_tilde_aud_s',
  'r_tilde_aud_s',
]

const WITHDRAWN = ['c_spend_new', 'sigma', 'b_tilde', 'r_e_point', 'b_tilde_aud_s', 'r_tilde_aud_s']

/** The public inputs of a proof as bytes, in the order that the network's verifier expects. */
export function publicInputs(statement: Statement): Uint8Array {
  const token = encodeField(addressToField(statement.token))
  switch (statement.circuit) {
    case 'register':
      return Buffer.concat([statement.y, statement.pvk, token, encodeField(addressToField(statement.account))])
    case 'transfer':
      return Buffer.concat([
        statement.spendable,
        statement.spendingKey,
        statement.viewingKey,
        token,
        statement.auditorRecipient,
        statement.auditorSender,
        ...select(statement.payload, TRANSFERRED),
      ])
    case 'withdraw':
      return Buffer.concat([
        statement.spendable,
        statement.spendingKey,
        token,
        statement.auditorSender,
        encodeField(statement.amount),
        ...select(statement.payload, WITHDRAWN),
      ])
  }
}

const select = (payload: Readonly<Record<string, Uint8Array>>, names: readonly string[]): Uint8Array[] =>
  names.flatMap((name) => payload[name] ?? [])
