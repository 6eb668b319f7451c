import { Address, xdr } from '@stellar/stellar-sdk'

/** The call that asks for an authorisation: what an entry of the tree must say, byte for byte. */
export interface Frame {
  /** strkey (C…) */
  readonly contract: string
  readonly name: string
  readonly args: xdr.ScVal[]
}

/** Who authorised what, for one host function. The host enters and leaves it with every call. */
export interface Authorisation {
  enter(): void
  leave(): void
  /** Throws Error(Auth, …) unless `address` authorised the call in which we are; a direct invoker never gets here. */
  require(address: string, frame: Frame): void
  /** What was recorded; empty when enforcing. */
  entries(): xdr.SorobanAuthorizationEntry[]
}

const calls = new WeakMap<Frame, xdr.InvokeContractArgs>()

export function callOf(frame: Frame): xdr.InvokeContractArgs {
  const known = calls.get(frame)
  if (known) return known
  const call = new xdr.InvokeContractArgs({
    contractAddress: new Address(frame.contract).toScAddress(),
    functionName: frame.name,
    args: frame.args,
  })
  calls.set(frame, call)
  return call
}
