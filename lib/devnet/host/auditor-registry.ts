import { type Contract, type ContractFunction, contractFunction } from './contract-function.ts'
import { contractDataKey } from './entry-key.ts'
import { contractError } from './host-error.ts'
import { variant } from './instance.ts'
import { u32 } from './scval.ts'

export const auditorKeyKey = (contract: string, auditorId: number) =>
  contractDataKey(contract, variant('AuditorKey', u32(auditorId)))

/** The auditor registry's interface, read-only: its keys are set at genesis. */
export const auditorRegistry: Contract = new Map(
  Object.entries<ContractFunction>({
    get_key: contractFunction({
      parameters: { auditor_id: 'u32' },
      returns: 'point',
      instructions: 400_000,
      run: ({ contract, storage }, { auditor_id }) => {
        const data = storage.get(auditorKeyKey(contract, auditor_id))?.data
        if (data?.type !== 'contractData') throw contractError(3301, `auditor ${auditor_id} is not registered`)
        return data.contractData.val
      },
    }),
  }),
)
