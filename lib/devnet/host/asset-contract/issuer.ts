import type { Asset } from '@stellar/stellar-sdk'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract-function.ts'

/** The flags of the issuer's account; 0 for the native asset, which has no issuer. */
export function issuerFlags(call: Call, asset: Asset): number {
  const issuer = asset.getIssuer()
  return asset.isNative() || issuer === undefined ? 0 : readAccount(issuer, call.storage).flags
}
