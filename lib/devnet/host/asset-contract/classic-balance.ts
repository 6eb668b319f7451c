import { type Asset, xdr } from '@stellar/stellar-sdk'
import { INT64_MAX, makeAccount, minimumBalance, withBalance } from '../../state/account.ts'
import { isAuthorized } from '../../state/trustline.ts'
import { readAccount } from '../account-signature.ts'
import type { Call } from '../contract-function.ts'
import { accountKey, trustlineKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'
import { address, i64, i128 } from '../scval.ts'

/** Error(Contract, #13) if the account has no trustline of the asset. */
export function readTrustline(call: Call, asset: Asset, holder: string): xdr.TrustLineEntry {
  const data = call.storage.get(trustlineKey(holder, asset))?.data
  if (data?.type !== 'trustline') throw contractError(13, 'trustline entry is missing for account', address(holder))
  return data.trustLine
}

export function writeTrustline(call: Call, asset: Asset, holder: string, line: xdr.TrustLineEntry): void {
  call.storage.put(trustlineKey(holder, asset), xdr.LedgerEntryData.trustline(line))
}

/** Adds `amount` (base units, negative to take) to an account's balance, within its reserve or its trustline's limit. */
export function moveClassic(call: Call, asset: Asset, holder: string, amount: bigint): void {
  if (amount > INT64_MAX || amount < -INT64_MAX)
    throw contractError(12, 'amount is not in the range of i64', i128(amount))
  if (asset.isNative()) moveNative(call, holder, amount)
  else moveTrustline(call, asset, holder, amount)
}

/** CAP-73: Creates an account that receives XLM. @throws Error(Contract, #14) for less than its reserve */
function makeHolder(call: Call, holder: string, amount: bigint): void {
  const account = makeAccount(holder, amount, call.ledger.sequence)
  const minimum = minimumBalance(account)
  if (amount < minimum) {
    throw contractError(14, 'transfer amount is below minimum balance for new account', i64(amount), i64(minimum))
  }
  call.storage.put(accountKey(holder), xdr.LedgerEntryData.account(account))
}

/** @throws Error(Contract, #10) for a balance outside the range or beyond 64 bits */
function within(balance: bigint, minimum: bigint, maximum: bigint): bigint {
  if (balance > INT64_MAX) throw contractError(10, 'resulting balance overflow')
  if (balance >= minimum && balance <= maximum) return balance
  const range = [minimum, balance, maximum].map(i64)
  throw contractError(10, 'resulting balance is not within the allowed range', ...range)
}

function moveNative(call: Call, holder: string, amount: bigint): void {
  if (amount >= 0n && !call.storage.get(accountKey(holder))) {
    makeHolder(call, holder, amount)
    return
  }
  const account = readAccount(holder, call.storage)
  const balance = within(account.balance + amount, minimumBalance(account), INT64_MAX)
  call.storage.put(accountKey(holder), xdr.LedgerEntryData.account(withBalance(account, balance)))
}

function moveTrustline(call: Call, asset: Asset, holder: string, amount: bigint): void {
  const line = readTrustline(call, asset, holder)
  if (!isAuthorized(line)) throw contractError(11, 'balance is deauthorized', address(holder))
  const balance = within(line.balance + amount, 0n, line.limit)
  writeTrustline(call, asset, holder, new xdr.TrustLineEntry({ ...line, balance }))
}
