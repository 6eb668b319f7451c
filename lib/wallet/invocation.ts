import { Address, Operation, xdr } from '@stellar/stellar-sdk'
import { readUnderlyingContract } from '#lib/stellar/asset.ts'
import type { TokenOnNetwork } from './deployment.ts'

/**
 * A call of the token with the authorization of the transaction's source account. The wallet builds it itself, because one
 * from a simulation could cover further calls.
 * @param within the calls that the token makes in the account's name
 */
export function invoke(
  { token }: TokenOnNetwork,
  name: string,
  args: xdr.ScVal[],
  within: xdr.SorobanAuthorizedInvocation[] = [],
): xdr.Operation {
  const rootInvocation = authorizedCall(token, name, args, within)
  const credentials = xdr.SorobanCredentials.sorobanCredentialsSourceAccount()
  const auth = [new xdr.SorobanAuthorizationEntry({ credentials, rootInvocation })]
  return Operation.invokeContractFunction({ contract: token, function: name, args, auth })
}

/** A deposit, in which the token transfers the amount from the account to itself. @throws LedgerError */
export async function invokeDeposit(
  deployment: TokenOnNetwork,
  { from, to, amount }: { from: string; to: string; amount: bigint },
): Promise<xdr.Operation> {
  const { rpc, token } = deployment
  // The token calls its own asset only, so an RPC that names another contract authorizes nothing.
  const asset = await readUnderlyingContract(rpc, token)
  const transfer = authorizedCall(asset, 'transfer', [scAddress(from), scAddress(token), scAmount(amount)])
  return invoke(deployment, 'deposit', [scAddress(from), scAddress(to), scAmount(amount)], [transfer])
}

function authorizedCall(
  contract: string,
  functionName: string,
  args: xdr.ScVal[],
  subInvocations: xdr.SorobanAuthorizedInvocation[] = [],
): xdr.SorobanAuthorizedInvocation {
  const contractAddress = new Address(contract).toScAddress()
  const call = new xdr.InvokeContractArgs({ contractAddress, functionName, args })
  const authorized = xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(call)
  return new xdr.SorobanAuthorizedInvocation({ function: authorized, subInvocations })
}

export const scAddress = (strkey: string): xdr.ScVal => new Address(strkey).toScVal()

/** A public amount as i128. Callers check that it is not negative. */
export const scAmount = (amount: bigint): xdr.ScVal =>
  xdr.ScVal.scvI128(new xdr.Int128Parts({ hi: amount >> 64n, lo: amount & 0xffff_ffff_ffff_ffffn }))
