import { type Contract, type ContractFunction, contractFunction } from './contract-function.ts'
import { contractDataKey } from './entry-key.ts'
import { contractError } from './host-error.ts'
import { variant } from './instance.ts'
import { u32 } from './scval.ts'

const DAY = 17_280

export const auditorKeyKey = (contract: string, auditorId: number) =>
  contractDataKey(contract, variant('Key', u32(auditorId)))

/** The read-only interface of the auditor registry. Its keys are set at genesis. */
export const auditorRegistry: Contract = new Map(
  Object.entries<ContractFunction>({
    get_key: contractFunction({
      parameters: { auditor_id: 'u32' },
      returns: 'point',
      instructions: 400_000,
      run: ({ contract, storage }, { auditor_id }) => {
        const key = auditorKeyKey(contract, auditor_id)
        const data = storage.get(key)?.data
        if (data?.type !== 'contractData') throw contractError(3301, `auditor ${auditor_id} is not registered`)
        storage.extend(key, 29 * DAY, 30 * DAY)
        return data.contractData.val
      },
    }),
  }),
)
