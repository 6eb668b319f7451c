import { Address, xdr } from '@stellar/stellar-sdk'

/** The call that requires an authorization. A node of a signed tree must equal it byte for byte. */
export interface Frame {
  /** strkey (C…) */
  readonly contract: string
  readonly name: string
  readonly args: xdr.ScVal[]
}

/** The authorizations of one host function. Call `enter` and `leave` around every contract call. */
export interface Authorization {
  enter(): void
  leave(): void
  /** @throws Error(Auth, …) unless `address` authorized the call. Not used for a contract's own direct calls. */
  require(address: string, frame: Frame): void
  /** The recorded entries; empty when enforcing. */
  entries(): xdr.SorobanAuthorizationEntry[]
}

const calls = new WeakMap<Frame, xdr.InvokeContractArgs>()

export function callOf(frame: Frame): xdr.InvokeContractArgs {
  const cached = calls.get(frame)
  if (cached) return cached
  const call = new xdr.InvokeContractArgs({
    contractAddress: new Address(frame.contract).toScAddress(),
    functionName: frame.name,
    args: frame.args,
  })
  calls.set(frame, call)
  return call
}
