import { scValToNative, xdr } from '@stellar/stellar-sdk'
import type { Payload } from './encryption.ts'
import { WalletError } from './wallet-error.ts'

/**
 * The `data` argument of a call that carries a proof: the XDR of an ScMap { payload, proof }. Both maps have symbol keys
 * in ascending byte order, which the host requires.
 */
export function encodeCallData(payload: Payload, proof: Uint8Array): Uint8Array {
  const bytes = Object.entries(payload).map(([name, value]): [string, xdr.ScVal] => [name, xdr.ScVal.scvBytes(value)])
  return sortedMap([
    ['payload', sortedMap(bytes)],
    ['proof', xdr.ScVal.scvBytes(proof)],
  ]).toXdr()
}

/**
 * Payload and proof of a `data` argument. The variants of the interface have different payload fields, so none is required.
 * @throws WalletError `malformed` for anything but a map of byte fields and a proof, with nothing after it
 */
export function decodeCallData(data: Uint8Array): { payload: Payload; proof: Uint8Array } {
  const { payload, proof } = record(decode(data))
  if (!(proof instanceof Uint8Array)) throw new WalletError('malformed', 'the call carries no proof')
  return { payload: fieldsOf(payload), proof }
}

/** The payload alone, as an archive keeps it. @throws WalletError `malformed` */
export const decodePayload = (payload: xdr.ScVal): Payload => fieldsOf(scValToNative(payload))

function fieldsOf(payload: unknown): Payload {
  const fields = Object.entries(record(payload)).map(([name, value]): [string, Uint8Array] => {
    if (!(value instanceof Uint8Array)) throw new WalletError('malformed', 'a field of the payload is not bytes')
    return [name, value]
  })
  return Object.fromEntries(fields)
}

function decode(data: Uint8Array): unknown {
  try {
    return scValToNative(xdr.ScVal.fromXdr(data))
  } catch (cause) {
    throw new WalletError('malformed', 'the data of the call is not the XDR of a value', { cause })
  }
}

function record(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Uint8Array) {
    throw new WalletError('malformed', 'the data of the call is not a map of payload and proof')
  }
  return Object.fromEntries(Object.entries(value))
}

function sortedMap(entries: [string, xdr.ScVal][]): xdr.ScVal {
  const ascending = entries.toSorted(([left], [right]) => (left < right ? -1 : 1))
  return xdr.ScVal.scvMap(ascending.map(([name, val]) => new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol(name), val })))
}
