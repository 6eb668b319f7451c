import type { xdr } from '@stellar/stellar-sdk'
import type { Frame } from './authorization.ts'
import type { ContractFunction, Parameters } from './contract-function.ts'
import { hostError } from './host-error.ts'
import { addressOf, boolOf, bytesOf, i128Of, muxedAddressOf, symbol, u32Of } from './scval.ts'

const decoders: { [Type in keyof Parameters]: (value: xdr.ScVal) => Parameters[Type] | undefined } = {
  address: addressOf,
  muxed: muxedAddressOf,
  u32: u32Of,
  i128: i128Of,
  bool: boolOf,
  bytes: bytesOf,
}

/**
 * Decodes the arguments by the function's parameters. A Wasm contract's generated code rejects a mismatch with
 * Error(WasmVm, …); the host itself rejects the arguments of an asset contract.
 */
export function decodeArguments(
  { parameters }: ContractFunction,
  { name: called, args }: Frame,
  isAsset: boolean,
): Record<string, Parameters[keyof Parameters]> {
  const names = Object.entries(parameters)
  if (names.length !== args.length) {
    if (isAsset) throw hostError('Context', 'UnexpectedSize', 'wrong number of args to func', [symbol(called)])
    throw hostError('WasmVm', 'UnexpectedSize', `the function takes ${names.length} arguments, not ${args.length}`)
  }
  return Object.fromEntries(
    names.map(([name, type], index) => {
      const arg = args[index]
      const value = arg && decoders[type](arg)
      if (value !== undefined) return [name, value]
      const problem = `argument ${name} is not of type ${type}`
      throw isAsset
        ? hostError('Value', 'UnexpectedType', problem, [], 'unavailable')
        : hostError('WasmVm', 'InvalidAction', problem)
    }),
  )
}
