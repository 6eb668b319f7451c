import type { xdr } from '@stellar/stellar-sdk'
import { administrativeFunctions } from './asset-contract/administrative-functions.ts'
import { readFunctions } from './asset-contract/read-functions.ts'
import { transferFunctions } from './asset-contract/transfer-functions.ts'
import { auditorRegistry } from './auditor-registry.ts'
import { nameOfCode } from './code.ts'
import type { Contract, ContractFunction } from './contract-function.ts'
import { codeKey } from './entry-key.ts'
import { hostError } from './host-error.ts'
import { type Instance, openInstance } from './instance.ts'
import type { Storage } from './storage.ts'
import { confidentialToken } from './token/functions.ts'
import { verifierRegistry } from './verifier-registry.ts'

/** The Stellar asset contract (CAP-46-6, with CAP-67 and CAP-73). */
const assetContract: Contract = new Map<string, ContractFunction>(
  Object.entries({ ...readFunctions, ...transferFunctions, ...administrativeFunctions }),
)

/** The built-in contracts other than asset contracts, by the name in their code entry. */
export const BUILT_IN = {
  'confidential-token': confidentialToken,
  'auditor-registry': auditorRegistry,
  'verifier-registry': verifierRegistry,
} as const

const byName: ReadonlyMap<string, Contract> = new Map(Object.entries(BUILT_IN))

/** The contract at an address. Reads its instance and code, like the host. @throws Error(Storage, MissingValue) */
export function contractAt(
  address: string,
  storage: Storage,
): { instance: Instance; functions: Contract; isAsset: boolean } {
  const { instance, executable } = openInstance(address, storage)
  const functions = functionsOf(executable, storage)
  if (!functions) throw hostError('Storage', 'MissingValue', `Wasm does not exist for contract ${address}`)
  return { instance, functions, isAsset: functions === assetContract }
}

function functionsOf(executable: xdr.ContractExecutable, storage: Storage): Contract | undefined {
  if (executable.type === 'contractExecutableStellarAsset') return assetContract
  if (executable.type !== 'contractExecutableWasm') return undefined
  const code = storage.get(codeKey(executable.wasmHash.value))?.data
  const name = code?.type === 'contractCode' ? nameOfCode(code.contractCode.code) : undefined
  return name === undefined ? undefined : byName.get(name)
}
