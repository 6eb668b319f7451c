import { isCanonical } from '#lib/wallet/grumpkin.ts'
import type { Statement } from '#lib/wallet/prover.ts'
import { CIRCUIT_TYPES, publicInputs } from '#lib/wallet/statement.ts'
import type { Call } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { addressOf, boolOf, bytes, bytesOf, u32 } from '../scval.ts'
import type { Payload } from './call-data.ts'

/** The address that the constructor set; `code` is the error for a token that has none. */
export function setting(call: Call, name: 'UnderlyingAsset' | 'Verifier' | 'Auditor', code: number): string {
  const contract = addressOf(call.setting(name))
  if (contract === undefined) throw contractError(code, `${name} is not set`)
  return contract
}

export const underlyingAsset = (call: Call): string => setting(call, 'UnderlyingAsset', 3508)

/** The auditor's key, 64 bytes; the registry's error #3301 for an unknown id. */
export function auditorKey(call: Call, auditorId: number): Uint8Array {
  const key = bytesOf(call.invoke(setting(call, 'Auditor', 3510), 'get_key', [u32(auditorId)]))
  if (!key) throw contractError(3301, `auditor ${auditorId} has no key`)
  return key
}

/** Error #3511 for a token that does not store its own address as a field element. */
export function requireAddressAsField(call: Call): void {
  if (!call.setting('AddressAsField')) throw contractError(3511, 'AddressAsField is not set')
}

/**
 * Error #3514 for a word of the payload that is not a canonical field element, then #3506 unless the proof is for this
 * statement: the current state and this payload. Whether a point is on the curve is left to the proof.
 */
export function checkProof(call: Call, payload: Payload, statement: Statement, proof: Uint8Array): void {
  for (const [name, content] of Object.entries(payload)) {
    if (!isCanonical(content)) throw contractError(3514, `${name} is not canonical`)
  }
  const inputs = [u32(CIRCUIT_TYPES[statement.circuit]), bytes(publicInputs(statement)), bytes(proof)]
  const isValid = boolOf(call.invoke(setting(call, 'Verifier', 3509), 'verify_proof', inputs))
  if (isValid !== true) throw contractError(3506, 'invalid proof')
}
