import type { CircuitName } from '#lib/prover/circuits.ts'
import { CIRCUIT_TYPES } from '#lib/wallet/statement.ts'
import { type Contract, type ContractFunction, contractFunction } from './contract-function.ts'
import { contractDataKey } from './entry-key.ts'
import { contractError } from './host-error.ts'
import { variant } from './instance.ts'
import { bool, bytesOf, u32 } from './scval.ts'
import type { Storage } from './storage.ts'

const nameByType = new Map<number, CircuitName>(
  Object.entries(CIRCUIT_TYPES).map(([name, type]) => [type, name as CircuitName]),
)

export const verificationKeyKey = (contract: string, circuit: number) =>
  contractDataKey(contract, variant('VerificationKey', u32(circuit)))

function readVerificationKey(contract: string, circuit: number, storage: Storage) {
  const data = storage.get(verificationKeyKey(contract, circuit))?.data
  if (data?.type !== 'contractData') throw contractError(3401, `no verification key for circuit ${circuit}`)
  return data.contractData.val
}

/** The UltraHonk verifier's interface, read-only. */
export const verifierRegistry: Contract = new Map(
  Object.entries<ContractFunction>({
    verify_proof: contractFunction({
      parameters: { circuit_type: 'u32', public_inputs: 'bytes', proof: 'bytes' },
      returns: 'bool',
      instructions: 81_000_000,
      run: ({ contract, storage, ledger }, { circuit_type, public_inputs, proof }) => {
        const key = bytesOf(readVerificationKey(contract, circuit_type, storage))
        const circuit = nameByType.get(circuit_type)
        return bool(circuit !== undefined && key !== undefined && ledger.verify(circuit, public_inputs, proof, key))
      },
    }),
    get_verification_key: contractFunction({
      parameters: { circuit_type: 'u32' },
      returns: 'bytes',
      instructions: 300_000,
      run: ({ contract, storage }, { circuit_type }) => readVerificationKey(contract, circuit_type, storage),
    }),
  }),
)
