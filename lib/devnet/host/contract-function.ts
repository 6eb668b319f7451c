import type { xdr } from '@stellar/stellar-sdk'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { Instance } from './instance.ts'
import type { MuxedAddress } from './scval.ts'
import type { Storage } from './storage.ts'

/** One contract call in progress, for the function that handles it. */
export interface Call extends Instance {
  /** strkey (C…) of the contract itself */
  readonly contract: string
  readonly ledger: LedgerContext
  readonly storage: Storage
  /** @throws Error(Auth, …) unless `address` authorized this call */
  requireAuth(address: string): void
  /** Calls another contract, for which this one is authorized as the invoker. */
  invoke(contract: string, name: string, args: xdr.ScVal[]): xdr.ScVal
  publish(topics: xdr.ScVal[], data: xdr.ScVal): void
  /** Charges instructions in addition to the function's declared ones. @throws Error(Budget, ExceededLimit) */
  spend(instructions: number): void
}

/** The types of parameters: their names in the interface, and the values that a handler receives. */
export interface Parameters {
  address: string
  muxed: MuxedAddress
  u32: number
  i128: bigint
  bool: boolean
  bytes: Uint8Array
}

export type Returns =
  | 'void'
  | 'address'
  | 'u32'
  | 'i128'
  | 'bool'
  | 'string'
  | 'bytes'
  | 'point'
  | 'account'
  | 'delegation'

export type Signature = Readonly<Record<string, keyof Parameters>>

type Decoded<S extends Signature> = { readonly [Name in keyof S]: Parameters[S[Name]] }

export interface ContractFunction {
  /** in the order of the arguments */
  readonly parameters: Signature
  readonly returns: Returns
  /** CPU instructions, declared instead of metered, without the contracts that it calls. */
  readonly instructions: number
  readonly run: (call: Call, args: Decoded<Signature>) => xdr.ScVal
}

export type Contract = ReadonlyMap<string, ContractFunction>

/** Ties a handler to the types of its parameters: the host calls it only with matching arguments. */
export function contractFunction<const S extends Signature>(definition: {
  readonly parameters: S
  readonly returns: Returns
  readonly instructions: number
  readonly run: (call: Call, args: Decoded<S>) => xdr.ScVal
}): ContractFunction {
  return { ...definition, run: (call, args) => definition.run(call, args as Decoded<S>) }
}
