import { createHash, timingSafeEqual } from 'node:crypto'
import { PROOF_BYTES } from '#lib/wallet/prover.ts'
import { type Contract, type ContractFunction, contractFunction } from './contract.ts'
import { contractDataKey } from './entry-key.ts'
import { contractError } from './host-error.ts'
import { variant } from './instance.ts'
import { bool, u32 } from './scval.ts'
import type { Storage } from './storage.ts'

/** The ASCII tag of each circuit in a stand-in proof, by the verifier's circuit type. */
export const CIRCUIT_TAGS = ['register', 'withdraw', 'transfer'] as const
export type Circuit = (typeof CIRCUIT_TAGS)[number]

export const circuitType = (circuit: Circuit): number => CIRCUIT_TAGS.indexOf(circuit)

/** Instead of 32 bytes of nothing an UltraHonk proof has 456 of them; a stand-in leaves the other 455 zero. */
const DIGEST_BYTES = 32
const ZEROS = new Uint8Array(PROOF_BYTES - DIGEST_BYTES)

/** SHA-256 of the circuit's tag and its public inputs: the first 32 bytes of a stand-in proof. */
export function statementDigest(circuit: Circuit, publicInputs: Uint8Array): Buffer {
  return createHash('sha256').update(circuit).update(publicInputs).digest()
}

export const verificationKeyKey = (contract: string, circuit: number) =>
  contractDataKey(contract, variant('VerificationKey', u32(circuit)))

function readVerificationKey(contract: string, circuit: number, storage: Storage) {
  const data = storage.get(verificationKeyKey(contract, circuit))?.data
  if (data?.type !== 'contractData') throw contractError(3401, `no verification key for circuit ${circuit}`)
  return data.contractData.val
}

/** The UltraHonk verifier's interface, read-only. Not a verifier: a proof is checked as the stand-in that it is. */
export const verifierRegistry: Contract = new Map<string, ContractFunction>([
  [
    'verify_proof',
    contractFunction({
      parameters: { circuit_type: 'u32', public_inputs: 'bytes', proof: 'bytes' },
      returns: 'bool',
      instructions: 81_000_000,
      run: ({ contract, storage }, { circuit_type, public_inputs, proof }) => {
        readVerificationKey(contract, circuit_type, storage)
        const circuit = CIRCUIT_TAGS[circuit_type]
        if (circuit === undefined || proof.length !== PROOF_BYTES) return bool(false)
        const digest = statementDigest(circuit, public_inputs)
        const stated = timingSafeEqual(digest, proof.subarray(0, DIGEST_BYTES))
        return bool(stated && Buffer.compare(proof.subarray(DIGEST_BYTES), ZEROS) === 0)
      },
    }),
  ],
  [
    'get_verification_key',
    contractFunction({
      parameters: { circuit_type: 'u32' },
      returns: 'bytes',
      instructions: 300_000,
      run: ({ contract, storage }, { circuit_type }) => readVerificationKey(contract, circuit_type, storage),
    }),
  ],
])
