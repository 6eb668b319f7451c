import { Address, xdr } from '@stellar/stellar-sdk'

/** The call that asks for an authorisation. A node of a signed tree must equal it byte for byte. */
export interface Frame {
  /** strkey (C…) */
  readonly contract: string
  readonly name: string
  readonly args: xdr.ScVal[]
}

/** The authorisations of one host function. Every contract call enters and leaves. */
export interface Authorisation {
  enter(): void
  leave(): void
  /** Error(Auth, …) unless `address` authorised the call. It is not asked for the calls that a contract makes itself. */
  require(address: string, frame: Frame): void
  /** The recorded entries; empty when enforcing. */
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
