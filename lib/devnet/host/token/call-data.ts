import { xdr } from '@stellar/stellar-sdk'
import type { CircuitName } from '#lib/prover/circuits.ts'
import { decodePoint, isField } from '#lib/wallet/grumpkin.ts'
import { contractError } from '../host-error.ts'
import { bytes, bytesOf, fieldsOf, struct } from '../scval.ts'

/** Points and fields of a payload by their names in interface 0.8.0. */
export type Payload = Record<string, Uint8Array>

const FIELDS: Readonly<Record<CircuitName, readonly string[]>> = {
  register: ['pvk', 'y'],
  transfer: [
    'b_tilde',
    'b_tilde_aud_s',
    'c_spend_new',
    'c_transfer',
    'r_e_point',
    'r_tilde_aud_r',
    'r_tilde_aud_s',
    'sigma',
    'v_tilde',
    'v_tilde_aud_r',
    'v_tilde_aud_s',
  ],
  withdraw: ['b_tilde', 'b_tilde_aud_s', 'c_spend_new', 'r_e_point', 'r_tilde_aud_s', 'sigma'],
}
const POINTS: ReadonlySet<string> = new Set(['pvk', 'y', 'c_spend_new', 'c_transfer', 'r_e_point'])

/**
 * Payload and proof of the `data` argument. Error #3507 unless it is a map of exactly these fields in these sizes, #3514
 * for a field element that is not canonical or a point that is not on the curve.
 */
export function decodeCallData(circuit: CircuitName, data: Uint8Array): { payload: Payload; proof: Uint8Array } {
  const envelope = fieldsOf(decode(data))
  const proof = bytesOf(envelope?.get('proof'))
  const fields = fieldsOf(envelope?.get('payload'))
  if (envelope?.size !== 2 || !proof || !fields) throw contractError(3507, 'data is not a map of payload and proof')

  const payload: Payload = {}
  for (const [name, value] of fields) {
    const content = bytesOf(value)
    if (content?.length !== (POINTS.has(name) ? 64 : 32)) throw contractError(3507, `${name} is malformed`)
    payload[name] = content
  }
  if (fields.size !== FIELDS[circuit].length || !FIELDS[circuit].every((name) => name in payload)) {
    throw contractError(3507, `payload does not have the fields of a ${circuit}`)
  }
  for (const [name, content] of Object.entries(payload)) checkEncoding(name, content)
  return { payload, proof }
}

const COMMITMENTS: ReadonlySet<string> = new Set(['c_spend_new', 'c_transfer'])

/** The fields of a payload that the events of interface 0.8.0 have: all but the commitments. */
export function disclosed(payload: Payload, besides: Record<string, xdr.ScVal> = {}): xdr.ScVal {
  const fields = Object.entries(payload).filter(([name]) => !COMMITMENTS.has(name))
  return struct({ ...besides, ...Object.fromEntries(fields.map(([name, content]) => [name, bytes(content)])) })
}

function decode(data: Uint8Array): xdr.ScVal | undefined {
  try {
    return xdr.ScVal.fromXdr(data)
  } catch {
    return undefined
  }
}

function checkEncoding(name: string, content: Uint8Array): void {
  if (!POINTS.has(name)) {
    if (!isField(content)) throw contractError(3514, `${name} is not a canonical field element`)
    return
  }
  try {
    decodePoint(content)
  } catch {
    throw contractError(3514, `${name} is not a canonical point of the curve`)
  }
}
