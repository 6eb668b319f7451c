import { type Asset, StrKey, xdr } from '@stellar/stellar-sdk'
import { AUTH_REVOCABLE, addSubentry, INT64_MAX } from '../../state/account.ts'
import { isAuthorized, makeTrustline, TRUSTLINE_AUTHORIZED, TRUSTLINE_CLAWBACK } from '../../state/trustline.ts'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract-function.ts'
import { accountKey, trustlineKey } from '../entry-key.ts'
import { contractError, hostError } from '../host-error.ts'
import { address, addressOf } from '../scval.ts'
import { readTrustline, writeTrustline } from './classic-balance.ts'
import { firstBalance, readContractBalance, writeContractBalance } from './contract-balance.ts'
import { issuerFlags } from './issuer.ts'
import { checkHolder, isIssuer } from './metadata.ts'

const MAINTAIN_LIABILITIES = 2

/** The address that may mint. Error(Storage, MissingValue) for the native asset, which has none. */
export function administrator(call: Call): string {
  const admin = addressOf(call.setting('Admin'))
  if (admin === undefined)
    throw hostError('Storage', 'MissingValue', 'the native asset has no administrator', [], 'none')
  return admin
}

export function readAuthorized(call: Call, asset: Asset, holder: string): boolean {
  if (StrKey.isValidContract(holder)) return (readContractBalance(call, holder) ?? firstBalance(call, asset)).authorized
  if (asset.isNative() || isIssuer(asset, holder)) return true
  return isAuthorized(readTrustline(call, asset, holder))
}

/** Error(Contract, #2) if the issuer may not revoke, or is the holder. */
export function writeAuthorized(call: Call, asset: Asset, holder: string, authorized: boolean): void {
  if (isIssuer(asset, holder)) throw contractError(2, 'the issuer is always authorized')
  if (!authorized && !(issuerFlags(call, asset) & AUTH_REVOCABLE)) {
    throw contractError(2, 'issuer does not have AUTH_REVOCABLE set')
  }
  if (StrKey.isValidContract(holder)) {
    writeContractBalance(call, holder, {
      ...(readContractBalance(call, holder) ?? firstBalance(call, asset)),
      authorized,
    })
    return
  }
  const line = readTrustline(call, asset, holder)
  const others = line.flags & ~(TRUSTLINE_AUTHORIZED | MAINTAIN_LIABILITIES)
  const flags = others | (authorized ? TRUSTLINE_AUTHORIZED : MAINTAIN_LIABILITIES)
  writeTrustline(call, asset, holder, new xdr.TrustLineEntry({ ...line, flags }))
}

/** @throws Error(Contract, #10) unless clawback was enabled when the balance was created */
export function checkClawback(call: Call, asset: Asset, holder: string): void {
  checkHolder(asset, holder)
  const isContract = StrKey.isValidContract(holder)
  const enabled = isContract
    ? readContractBalance(call, holder)?.clawback === true
    : (readTrustline(call, asset, holder).flags & TRUSTLINE_CLAWBACK) !== 0
  if (!enabled) throw contractError(10, `${isContract ? 'balance' : 'trustline'} isn't clawbackable`)
}

/**
 * CAP-73: creates a trustline without a limit. The account pays the reserve, so it must authorize the call, unless it
 * already has a trustline.
 */
export function trust(call: Call, asset: Asset, holder: string): void {
  checkHolder(asset, holder)
  if (!StrKey.isValidEd25519PublicKey(holder) || call.storage.get(trustlineKey(holder, asset))) return
  call.requireAuth(holder)
  const grown = addSubentry(readAccount(holder, call.storage))
  if ('refusal' in grown) {
    throw grown.refusal === 'too-many'
      ? contractError(15, 'too many subentries', address(holder))
      : contractError(14, 'balance is below the reserve for one more entry', address(holder))
  }
  const { accountId } = grown.account
  const line = makeTrustline(accountId, asset.toTrustLineXdrObject(), INT64_MAX, issuerFlags(call, asset))
  call.storage.put(accountKey(holder), xdr.LedgerEntryData.account(grown.account))
  writeTrustline(call, asset, holder, line)
}
