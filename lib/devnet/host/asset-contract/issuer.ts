import type { Asset } from '@stellar/stellar-sdk'
import { AUTH_CLAWBACK, AUTH_REQUIRED, AUTH_REVOCABLE } from '../../state/account.ts'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract.ts'

interface IssuerFlags {
  readonly authorizationRequired: boolean
  readonly authorizationRevocable: boolean
  readonly clawback: boolean
}

/** Reads the issuer's account; the native asset has none, and no flags. */
export function issuerFlags(call: Call, asset: Asset): IssuerFlags {
  const issuer = asset.getIssuer()
  const flags = asset.isNative() || issuer === undefined ? 0 : readAccount(issuer, call.storage).flags
  return {
    authorizationRequired: (flags & AUTH_REQUIRED) !== 0,
    authorizationRevocable: (flags & AUTH_REVOCABLE) !== 0,
    clawback: (flags & AUTH_CLAWBACK) !== 0,
  }
}
