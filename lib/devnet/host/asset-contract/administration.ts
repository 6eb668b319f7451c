import { type Asset, StrKey, xdr } from '@stellar/stellar-sdk'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract.ts'
import { accountKey, trustlineKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'
import { addressOf } from '../scval.ts'
import {
  BASE_RESERVE,
  INT64_MAXIMUM,
  isAuthorized,
  liabilitiesOf,
  minimumBalance,
  readTrustline,
  writeTrustline,
} from './classic-balance.ts'
import { firstBalance, readContractBalance, writeContractBalance } from './contract-balance.ts'
import { issuerFlags } from './issuer.ts'
import { isIssuer } from './metadata.ts'

const AUTHORIZED = 1
const MAINTAIN_LIABILITIES = 2
const CLAWBACK_ENABLED = 4
const MAXIMUM_SUBENTRIES = 1_000

/** Who may mint; Error(Contract, #2) for the native asset, which nobody may. */
export function administrator(call: Call): string {
  const admin = addressOf(call.setting('Admin'))
  if (admin === undefined) throw contractError(2, 'operation is not supported for the native asset')
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
  if (!authorized && !issuerFlags(call, asset).authorizationRevocable) {
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
  const others = line.flags & ~(AUTHORIZED | MAINTAIN_LIABILITIES)
  const flags = others | (authorized ? AUTHORIZED : MAINTAIN_LIABILITIES)
  writeTrustline(call, asset, holder, new xdr.TrustLineEntry({ ...line, flags }))
}

/** Error(Contract, #11) unless the balance was made while its issuer kept the right to claw back. */
export function checkClawback(call: Call, asset: Asset, holder: string): void {
  const enabled = StrKey.isValidContract(holder)
    ? readContractBalance(call, holder)?.clawback === true
    : (readTrustline(call, asset, holder).flags & CLAWBACK_ENABLED) !== 0
  if (!enabled) throw contractError(11, `clawback is not enabled for ${holder}`)
}

/** CAP-73: gives an account a trustline without a limit, unless it has one. Its reserve is the account's. */
export function trust(call: Call, asset: Asset, holder: string): void {
  if (!StrKey.isValidEd25519PublicKey(holder) || asset.isNative() || isIssuer(asset, holder)) return
  const key = trustlineKey(holder, asset)
  if (call.storage.get(key)) return
  const account = readAccount(holder, call.storage)
  if (account.numSubEntries >= MAXIMUM_SUBENTRIES) throw contractError(15, `too many subentries: ${holder}`)
  const reserve = minimumBalance(account) + BASE_RESERVE + liabilitiesOf(account.ext).selling
  if (account.balance < reserve) throw contractError(14, `balance ${account.balance} is below the reserve ${reserve}`)
  const flags = issuerFlags(call, asset)
  const line = new xdr.TrustLineEntry({
    accountId: account.accountId,
    asset: asset.toTrustLineXdrObject(),
    balance: 0n,
    limit: INT64_MAXIMUM,
    flags: (flags.authorizationRequired ? 0 : AUTHORIZED) | (flags.clawback ? CLAWBACK_ENABLED : 0),
    ext: xdr.TrustLineEntryExt.v0(),
  })
  const holding = new xdr.AccountEntry({ ...account, numSubEntries: account.numSubEntries + 1 })
  call.storage.put(accountKey(holder), xdr.LedgerEntryData.account(holding))
  writeTrustline(call, asset, holder, line)
}
