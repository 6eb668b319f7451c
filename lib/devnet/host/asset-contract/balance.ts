import { type Asset, StrKey } from '@stellar/stellar-sdk'
import { INT64_MAX } from '../../state/account.ts'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract-function.ts'
import { moveClassic, readTrustline } from './classic-balance.ts'
import { creditContract, debitContract, readContractBalance } from './contract-balance.ts'
import { isIssuer } from './metadata.ts'

/** Base units of an address; the largest amount for the issuer. @throws Error(Contract, #13) without a trustline */
export function readBalance(call: Call, asset: Asset, holder: string): bigint {
  if (StrKey.isValidContract(holder)) return readContractBalance(call, holder)?.amount ?? 0n
  if (asset.isNative()) return readAccount(holder, call.storage).balance
  if (isIssuer(asset, holder)) return INT64_MAX
  return readTrustline(call, asset, holder).balance
}

/** Credits an address. Units sent to the issuer are burned. */
export function credit(call: Call, asset: Asset, holder: string, amount: bigint): void {
  if (StrKey.isValidContract(holder)) creditContract(call, asset, holder, amount)
  else if (!isIssuer(asset, holder)) moveClassic(call, asset, holder, amount)
}

/** Debits an address. The issuer's units are minted. */
export function debit(call: Call, asset: Asset, holder: string, amount: bigint): void {
  if (StrKey.isValidContract(holder)) debitContract(call, holder, amount)
  else if (!isIssuer(asset, holder)) moveClassic(call, asset, holder, -amount)
}
