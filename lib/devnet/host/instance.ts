import { xdr } from '@stellar/stellar-sdk'
import { contractData, instanceKey } from './entry-key.ts'
import { hostError } from './host-error.ts'
import { symbol, vec } from './scval.ts'
import type { Storage } from './storage.ts'

/** The instance entry of a contract, with the values that it stores. */
export interface Instance {
  /** A value by the name of its key, which is a symbol or a vector of one symbol; undefined if absent. */
  setting(name: string): xdr.ScVal | undefined
  /** The value under this key, or undefined. */
  value(key: xdr.ScVal): xdr.ScVal | undefined
  /** Replaces the value of an existing key. */
  set(name: string, val: xdr.ScVal): void
  extendInstance(threshold: number, extendTo: number): void
}

/** Error(Storage, MissingValue) if there is no contract. */
export function openInstance(
  contract: string,
  storage: Storage,
): { instance: Instance; executable: xdr.ContractExecutable } {
  const key = instanceKey(contract)
  const read = (): xdr.ScContractInstance => {
    const data = storage.get(key)?.data
    if (data?.type !== 'contractData' || data.contractData.val.type !== 'scvContractInstance') {
      throw hostError('Storage', 'MissingValue', `trying to get non-existing value for contract instance ${contract}`)
    }
    return data.contractData.val.instance
  }
  const { executable } = read()
  return {
    executable,
    instance: {
      setting: (name) => read().storage?.find((entry) => nameOf(entry) === name)?.val,
      value: (wanted) => read().storage?.find(({ key }) => key.equals(wanted))?.val,
      set: (name, val) => {
        const entries = (read().storage ?? []).map((entry) =>
          nameOf(entry) === name ? new xdr.ScMapEntry({ key: entry.key, val }) : entry,
        )
        const instance = new xdr.ScContractInstance({ executable, storage: entries })
        storage.put(key, contractData(key, xdr.ScVal.scvContractInstance(instance)))
      },
      extendInstance: (threshold, extendTo) => storage.extend(key, threshold, extendTo),
    },
  }
}

function nameOf({ key }: xdr.ScMapEntry): string | undefined {
  const symbol = key.type === 'scvVec' && key.vec?.length === 1 ? key.vec[0] : key
  return symbol?.type === 'scvSymbol' ? symbol.value : undefined
}

/** The key of a unit variant in a contract's storage: a vector of its name. */
export const variant = (name: string, ...values: xdr.ScVal[]): xdr.ScVal => vec(symbol(name), ...values)
