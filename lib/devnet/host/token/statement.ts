import { createHash } from 'node:crypto'
import type { Circuit } from '../verifier-registry.ts'

/** Points and fields of a payload by their names in interface 0.8.0. */
export type Payload = Readonly<Record<string, Uint8Array>>

/** What a proof is about. Points have 64 bytes, fields 32; `amount` is in base units. */
export type ProofStatement =
  | { circuit: 'register'; token: string; account: string; y: Uint8Array; pvk: Uint8Array }
  | {
      circuit: 'transfer'
      token: string
      /** commitment of the sender that the call replaces, and the sender's public key */
      spendable: Uint8Array
      spendingKey: Uint8Array
      /** of the recipient */
      viewingKey: Uint8Array
      auditorRecipient: Uint8Array
      auditorSender: Uint8Array
      payload: Payload
    }
  | {
      circuit: 'withdraw'
      token: string
      spendable: Uint8Array
      spendingKey: Uint8Array
      amount: bigint
      payload: Payload
    }

type PayloadCircuit = Exclude<Circuit, 'register'>

/** Order in which the payload follows the other public inputs. The last field is new in 0.8.0: without it, it is left out. */
const PAYLOAD_ORDER: Readonly<Record<PayloadCircuit, readonly string[]>> = {
  transfer: [
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
  ],
  withdraw: ['c_spend_new', 'r_e_point', 'sigma', 'b_tilde', 'b_tilde_aud_s', 'r_tilde_aud_s'],
}

/** The public inputs of a statement, in the order in which the stand-in proof hashes them. */
export function publicInputs(statement: ProofStatement): Uint8Array {
  switch (statement.circuit) {
    case 'register':
      return Buffer.concat([digestOf(statement.token), digestOf(statement.account), statement.y, statement.pvk])
    case 'transfer':
      return Buffer.concat([
        statement.spendable,
        statement.spendingKey,
        statement.viewingKey,
        digestOf(statement.token),
        statement.auditorRecipient,
        statement.auditorSender,
        ...payloadInputs('transfer', statement.payload),
      ])
    case 'withdraw':
      return Buffer.concat([
        statement.spendable,
        statement.spendingKey,
        digestOf(statement.token),
        integer(statement.amount),
        ...payloadInputs('withdraw', statement.payload),
      ])
  }
}

function payloadInputs(circuit: PayloadCircuit, payload: Payload): Uint8Array[] {
  return PAYLOAD_ORDER[circuit].flatMap((name) => payload[name] ?? [])
}

const digestOf = (strkey: string): Buffer => createHash('sha256').update(strkey).digest()
const integer = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')
