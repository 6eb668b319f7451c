import type { xdr } from '@stellar/stellar-sdk'
import type { CircuitName } from '#lib/prover/circuits.ts'
import { CIRCUIT_TYPES } from '#lib/wallet/statement.ts'
import { type Call, type Contract, type ContractFunction, contractFunction } from './contract-function.ts'
import { contractError, hostError } from './host-error.ts'
import { variant } from './instance.ts'
import { bool, bytesOf, u32 } from './scval.ts'

const nameByType = new Map<number, CircuitName>(
  Object.entries(CIRCUIT_TYPES).map(([name, type]) => [type, name as CircuitName]),
)

/** The circuit types of interface 0.8.0: the token's, and the one for a clawback. */
const DECLARED_TYPES: ReadonlySet<number> = new Set([0, 1, 2, 3, 4, 100])

/**
 * Instructions of a verification. A proof for other public inputs fails the sumcheck, before the multiplications that are
 * most of the cost.
 */
const SUMCHECK = 25_000_000
const COMMITMENT_CHECK = 67_000_000

/** The key of a verification key in the verifier's instance. */
export const verificationKeyName = (circuit: number): xdr.ScVal => variant('VerificationKey', u32(circuit))

/** The key for a circuit type in the verifier's instance entry. */
export function findVerificationKey(
  instance: xdr.LedgerEntryData | undefined,
  circuit: number,
): Uint8Array | undefined {
  if (instance?.type !== 'contractData' || instance.contractData.val.type !== 'scvContractInstance') return undefined
  const name = verificationKeyName(circuit)
  return bytesOf(instance.contractData.val.instance.storage?.find(({ key }) => key.equals(name))?.val)
}

/** Error(WasmVm, InvalidAction) for a number that isn't a circuit type, #3401 for a type without a key. */
function readVerificationKey(call: Call, circuit: number): xdr.ScVal {
  if (!DECLARED_TYPES.has(circuit)) {
    throw hostError('WasmVm', 'InvalidAction', `VM call trapped: ${circuit} is not a circuit type`)
  }
  const key = call.value(verificationKeyName(circuit))
  if (!key) throw contractError(3401, `no verification key for circuit ${circuit}`)
  return key
}

/** The read-only interface of the UltraHonk verifier. Its keys are set at genesis, in its instance entry. */
export const verifierRegistry: Contract = new Map(
  Object.entries<ContractFunction>({
    verify_proof: contractFunction({
      parameters: { circuit_type: 'u32', public_inputs: 'bytes', proof: 'bytes' },
      returns: 'bool',
      instructions: SUMCHECK,
      run: (call, { circuit_type, public_inputs, proof }) => {
        const key = bytesOf(readVerificationKey(call, circuit_type))
        const circuit = nameByType.get(circuit_type)
        if (circuit === undefined || key === undefined) return bool(false)
        const isValid = call.ledger.verify(circuit, public_inputs, proof, key)
        if (isValid) call.spend(COMMITMENT_CHECK)
        return bool(isValid)
      },
    }),
    get_verification_key: contractFunction({
      parameters: { circuit_type: 'u32' },
      returns: 'bytes',
      instructions: 300_000,
      run: (call, { circuit_type }) => readVerificationKey(call, circuit_type),
    }),
  }),
)
