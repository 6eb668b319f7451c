import { equalBytes } from '@noble/curves/utils.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { PROOF_BYTES, type Prover, type Statement } from '#lib/wallet/prover.ts'
import { hasValidPoints, publicInputs } from '#lib/wallet/statement.ts'
import { type CircuitName, KEY_BYTES } from './circuits.ts'
import type { Verify } from './verifier.ts'

/** A stand-in fills only the first 32 bytes of a proof. */
const DIGEST_BYTES = 32
const ZEROS = new Uint8Array(PROOF_BYTES - DIGEST_BYTES)

/**
 * The stand-in for a proof, 14,592 bytes: the SHA-256 of the circuit's name and the public inputs, then zeros. It binds
 * the call to the current state, but does not prove that the balance covers the amount.
 */
export function standIn(statement: Statement): Uint8Array {
  const proof = new Uint8Array(PROOF_BYTES)
  proof.set(digestOf(statement.circuit, publicInputs(statement)))
  return proof
}

const NO_KEY = new Uint8Array(KEY_BYTES)

/** The verification keys of a verifier that accepts stand-ins. They differ from all real keys, so a real prover refuses to work. */
export const STAND_IN_KEYS = {
  register: NO_KEY,
  transfer: NO_KEY,
  withdraw: NO_KEY,
  set_spender: NO_KEY,
  spender_transfer: NO_KEY,
} as const satisfies Record<CircuitName, Uint8Array>

/** The prover for a ledger that accepts stand-ins. It does not use the witness. */
export const prover: Prover = { verificationKeys: STAND_IN_KEYS, prove: async (statement) => standIn(statement) }

/** Accepts the proofs of `standIn`, unless a point of the statement is off the curve or a key is the identity. */
export const verifyStandIn: Verify = (circuit, inputs, proof) => {
  if (proof.length !== PROOF_BYTES) return false
  const matches = equalBytes(digestOf(circuit, inputs), proof.subarray(0, DIGEST_BYTES))
  return matches && equalBytes(proof.subarray(DIGEST_BYTES), ZEROS) && hasValidPoints(circuit, inputs)
}

function digestOf(circuit: CircuitName, inputs: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8ToBytes(circuit), inputs))
}
