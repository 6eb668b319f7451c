import type { Asset } from '@stellar/stellar-sdk'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract.ts'

const REQUIRED = 1
const REVOCABLE = 2
const CLAWBACK = 8

export interface IssuerFlags {
  readonly authorizationRequired: boolean
  readonly authorizationRevocable: boolean
  readonly clawback: boolean
}

/** Reads the issuer's account; the native asset has none, and no flags. */
export function issuerFlags(call: Call, asset: Asset): IssuerFlags {
  const issuer = asset.getIssuer()
  const flags = asset.isNative() || issuer === undefined ? 0 : readAccount(issuer, call.storage).flags
  return {
    authorizationRequired: (flags & REQUIRED) !== 0,
    authorizationRevocable: (flags & REVOCABLE) !== 0,
    clawback: (flags & CLAWBACK) !== 0,
  }
}
