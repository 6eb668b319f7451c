import { xdr } from '@stellar/stellar-sdk'
import type { CircuitName } from '#lib/prover/circuits.ts'
import { contractError, hostError } from '../host-error.ts'
import { bytes, bytesOf, fieldsOf, struct } from '../scval.ts'

/** Points and fields of a payload by their names in interface 0.8.0. */
export type Payload = Record<string, Uint8Array>

/** The fields of each payload and their sizes in bytes: 64 for a point, 32 for a field element. */
const FIELDS: Readonly<Record<CircuitName, Readonly<Record<string, 32 | 64>>>> = {
  register: { pvk: 64, y: 64 },
  transfer: {
    b_tilde: 32,
    b_tilde_aud_s: 32,
    c_spend_new: 64,
    c_transfer: 64,
    r_e_point: 64,
    r_tilde_aud_r: 32,
    r_tilde_aud_s: 32,
    sigma: 32,
    v_tilde: 32,
    v_tilde_aud_r: 32,
    v_tilde_aud_s: 32,
  },
  withdraw: { b_tilde: 32, b_tilde_aud_s: 32, c_spend_new: 64, r_e_point: 64, r_tilde_aud_s: 32, sigma: 32 },
  set_spender: {
    a_tilde: 32,
    b_tilde: 32,
    b_tilde_aud_s: 32,
    c_a: 64,
    c_spend_new: 64,
    escrowed_dvk: 64,
    r_a_tilde_aud_s: 32,
    r_e_point: 64,
    r_tilde_aud_s: 32,
    sigma: 32,
    sigma_a: 32,
    v_tilde_aud_s: 32,
  },
  spender_transfer: {
    a_tilde_aud_s: 32,
    a_tilde_new: 32,
    c_a_new: 64,
    c_transfer: 64,
    r_e_point: 64,
    r_tilde_aud_r: 32,
    r_tilde_aud_s: 32,
    sigma_a_new: 32,
    v_tilde: 32,
    v_tilde_aud_r: 32,
    v_tilde_aud_s: 32,
  },
}

/**
 * Payload and proof of the `data` argument. Fields that the payload of this circuit does not have are dropped, as in the
 * released contract. Errors of the host for anything but one well-formed value, #3507 for a value of another type, and
 * for a field that is missing or has another size. Whether points and field elements are canonical is not checked here.
 */
export function decodeCallData(circuit: CircuitName, data: Uint8Array): { payload: Payload; proof: Uint8Array } {
  const value = decodeValue(data)
  checkOrder(value)
  const envelope = fieldsOf(value)
  const [fields, proof] = [fieldsOf(envelope?.get('payload')), bytesOf(envelope?.get('proof'))]
  if (!fields || !proof) throw contractError(3507, 'data is not a map of payload and proof')
  const payload: Payload = {}
  for (const [name, size] of Object.entries(FIELDS[circuit])) {
    const content = bytesOf(fields.get(name))
    if (content?.length !== size) throw contractError(3507, `${name} is missing or malformed`)
    payload[name] = content
  }
  return { payload, proof }
}

/**
 * Fields of a payload that events omit in interface 0.8.0: commitments, and the fields that the delegation's entry
 * stores.
 */
const STORED: ReadonlySet<string> = new Set([
  'c_spend_new',
  'c_transfer',
  'c_a',
  'c_a_new',
  'a_tilde',
  'a_tilde_new',
  'escrowed_dvk',
  'sigma_a',
])

/** The data of an operation's event. */
export function eventData(payload: Payload, others: Record<string, xdr.ScVal> = {}): xdr.ScVal {
  const fields = Object.entries(payload).filter(([name]) => !STORED.has(name))
  return struct({ ...others, ...Object.fromEntries(fields.map(([name, content]) => [name, bytes(content)])) })
}

/**
 * Decodes the one value in `data`. The host has one error for bytes that are not a value, and another for bytes after a
 * value.
 */
function decodeValue(data: Uint8Array): xdr.ScVal {
  const values: xdr.ScVal[] = []
  const counting = {
    name: 'ScVal',
    schema: xdr.ScVal.schema,
    fromXdrObject: (wire: Parameters<typeof xdr.ScVal.fromXdrObject>[0]) => {
      values.push(xdr.ScVal.fromXdrObject(wire))
      return wire
    },
  }
  let isComplete = true
  try {
    xdr.decodeStream(counting as unknown as typeof xdr.ScVal, data)
  } catch {
    isComplete = false
  }
  const [value, ...others] = values
  if (!value) throw hostError('Context', 'ExceededLimit', 'failed to deserialize the value in data')
  if (others.length > 0 || !isComplete) throw hostError('Value', 'InvalidInput', 'data has bytes after its value')
  return value
}

/** Error(Object, InvalidInput) for a map, at any depth, whose keys do not ascend. */
function checkOrder(value: xdr.ScVal): void {
  if (value.type === 'scvVec') for (const item of value.vec ?? []) checkOrder(item)
  if (value.type !== 'scvMap') return
  let previous: xdr.ScVal | undefined
  for (const { key, val } of value.map ?? []) {
    if (previous && compare(previous, key) >= 0)
      throw hostError('Object', 'InvalidInput', 'the keys of a map do not ascend')
    previous = key
    checkOrder(key)
    checkOrder(val)
  }
}

/** By type, then by content: text by its bytes, everything else by its XDR. */
function compare(left: xdr.ScVal, right: xdr.ScVal): number {
  if (left.type === 'scvSymbol' && right.type === 'scvSymbol') {
    return Buffer.compare(Buffer.from(left.value.toString()), Buffer.from(right.value.toString()))
  }
  return Buffer.compare(left.toXdr(), right.toXdr())
}
