import type { Statement } from '#lib/wallet/prover.ts'
import { CIRCUIT_TYPES, publicInputs } from '#lib/wallet/statement.ts'
import type { Call } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { addressOf, boolOf, bytes, bytesOf, u32 } from '../scval.ts'

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

/** Error #3506 unless the proof was made for this statement: the state as it is now, and this payload. */
export function checkProof(call: Call, statement: Statement, proof: Uint8Array): void {
  const inputs = [u32(CIRCUIT_TYPES[statement.circuit]), bytes(publicInputs(statement)), bytes(proof)]
  const proven = boolOf(call.invoke(setting(call, 'Verifier', 3509), 'verify_proof', inputs))
  if (proven !== true) throw contractError(3506, 'invalid proof')
}
