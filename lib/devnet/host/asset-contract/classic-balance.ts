import { type Asset, xdr } from '@stellar/stellar-sdk'
import { INT64_MAX, makeAccount, minimumBalance, withBalance } from '../../state/account.ts'
import { isAuthorized } from '../../state/trustline.ts'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract-function.ts'
import { accountKey, trustlineKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'

/** Error(Contract, #13) if the account has no trustline of the asset. */
export function readTrustline(call: Call, asset: Asset, holder: string): xdr.TrustLineEntry {
  const data = call.storage.get(trustlineKey(holder, asset))?.data
  if (data?.type !== 'trustline') throw contractError(13, `trustline entry is missing for account ${holder}`)
  return data.trustLine
}

export function writeTrustline(call: Call, asset: Asset, holder: string, line: xdr.TrustLineEntry): void {
  call.storage.put(trustlineKey(holder, asset), xdr.LedgerEntryData.trustline(line))
}

/** Adds `amount` (base units, negative to take) to an account's balance, within its reserve or its trustline's limit. */
export function moveClassic(call: Call, asset: Asset, holder: string, amount: bigint): void {
  if (amount > INT64_MAX || amount < -INT64_MAX) throw contractError(12, 'amount is not in the range of i64')
  if (asset.isNative()) moveNative(call, holder, amount)
  else moveTrustline(call, asset, holder, amount)
}

/** CAP-73: XLM for an account that does not exist creates it. Error(Contract, #14) for less than its reserve. */
function makeHolder(call: Call, holder: string, amount: bigint): void {
  const account = makeAccount(holder, amount, call.ledger.sequence)
  if (amount < minimumBalance(account)) throw contractError(14, `${amount} is not the reserve of a new account`)
  call.storage.put(accountKey(holder), xdr.LedgerEntryData.account(account))
}

function moveNative(call: Call, holder: string, amount: bigint): void {
  if (amount >= 0n && !call.storage.get(accountKey(holder))) {
    makeHolder(call, holder, amount)
    return
  }
  const account = readAccount(holder, call.storage)
  const balance = account.balance + amount
  if (balance < minimumBalance(account)) {
    throw contractError(10, `resulting balance of ${holder} is below its reserve: ${balance}`)
  }
  if (balance > INT64_MAX) throw contractError(10, `balance of ${holder} would overflow`)
  call.storage.put(accountKey(holder), xdr.LedgerEntryData.account(withBalance(account, balance)))
}

function moveTrustline(call: Call, asset: Asset, holder: string, amount: bigint): void {
  const line = readTrustline(call, asset, holder)
  if (!isAuthorized(line)) throw contractError(11, `balance is deauthorized: ${holder}`)
  const balance = line.balance + amount
  if (balance < 0n) {
    throw contractError(10, `balance is not sufficient to spend: ${line.balance} < ${-amount}`)
  }
  if (balance > line.limit) throw contractError(10, `balance of ${holder} would exceed its trustline's limit`)
  writeTrustline(call, asset, holder, new xdr.TrustLineEntry({ ...line, balance }))
}
