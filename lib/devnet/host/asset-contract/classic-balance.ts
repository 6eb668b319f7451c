import { type Asset, xdr } from '@stellar/stellar-sdk'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract.ts'
import { accountKey, trustlineKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'

export const BASE_RESERVE = 5_000_000n
const AUTHORIZED = 1
export const INT64_MAXIMUM = (1n << 63n) - 1n

/** Error(Contract, #13) if the account has no trustline of the asset. */
export function readTrustline(call: Call, asset: Asset, holder: string): xdr.TrustLineEntry {
  const data = call.storage.get(trustlineKey(holder, asset))?.data
  if (data?.type !== 'trustline') throw contractError(13, `trustline entry is missing for account ${holder}`)
  return data.trustLine
}

export function writeTrustline(call: Call, asset: Asset, holder: string, line: xdr.TrustLineEntry): void {
  call.storage.put(trustlineKey(holder, asset), xdr.LedgerEntryData.trustline(line))
}

export const isAuthorized = (line: xdr.TrustLineEntry): boolean => (line.flags & AUTHORIZED) !== 0

/** Adds `amount` (negative to take) in base units to what an account holds, within its reserve, limit and liabilities. */
export function moveClassic(call: Call, asset: Asset, holder: string, amount: bigint): void {
  if (amount > INT64_MAXIMUM || amount < -INT64_MAXIMUM) throw contractError(12, 'amount is not in the range of i64')
  if (asset.isNative()) moveNative(call, holder, amount)
  else moveTrustline(call, asset, holder, amount)
}

function moveNative(call: Call, holder: string, amount: bigint): void {
  const account = readAccount(holder, call.storage)
  const { selling, buying } = liabilitiesOf(account.ext)
  const balance = account.balance + amount
  if (amount < 0n && balance < minimumBalance(account) + selling) {
    throw contractError(10, `resulting balance of ${holder} is below its reserve and liabilities: ${balance}`)
  }
  if (balance > INT64_MAXIMUM - buying) throw contractError(10, `balance of ${holder} would overflow`)
  const changed = new xdr.AccountEntry({ ...account, balance })
  call.storage.put(accountKey(holder), xdr.LedgerEntryData.account(changed))
}

function moveTrustline(call: Call, asset: Asset, holder: string, amount: bigint): void {
  const line = readTrustline(call, asset, holder)
  if (!isAuthorized(line)) throw contractError(11, `balance is deauthorized: ${holder}`)
  const { selling, buying } = liabilitiesOf(line.ext)
  const balance = line.balance + amount
  if (amount < 0n && balance < selling) {
    throw contractError(10, `balance is not sufficient to spend: ${line.balance} < ${-amount}`)
  }
  if (balance > line.limit - buying) throw contractError(10, `balance of ${holder} would exceed its trustline's limit`)
  writeTrustline(call, asset, holder, new xdr.TrustLineEntry({ ...line, balance }))
}

/** Stroops that an account cannot spend: two base reserves and one for each subentry that it pays for itself. */
export function minimumBalance({ numSubEntries, ext }: xdr.AccountEntry): bigint {
  const sponsorship = ext.type === 'v1' && ext.v1.ext.type === 'v2' ? ext.v1.ext.v2 : undefined
  const { numSponsoring = 0, numSponsored = 0 } = sponsorship ?? {}
  return BigInt(2 + numSubEntries + numSponsoring - numSponsored) * BASE_RESERVE
}

export function liabilitiesOf(ext: xdr.AccountEntryExt | xdr.TrustLineEntryExt): { selling: bigint; buying: bigint } {
  return ext.type === 'v1' ? ext.v1.liabilities : { selling: 0n, buying: 0n }
}
