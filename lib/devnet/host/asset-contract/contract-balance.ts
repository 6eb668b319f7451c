import type { Asset } from '@stellar/stellar-sdk'
import { AUTH_CLAWBACK, AUTH_REQUIRED } from '../../state/account.ts'
import type { Call } from '../contract-function.ts'
import { contractData, contractDataKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'
import { variant } from '../instance.ts'
import { address, bool, boolOf, fieldsOf, i128, i128Of, struct } from '../scval.ts'
import { issuerFlags } from './issuer.ts'
import { BALANCE_EXTENSION, BALANCE_THRESHOLD } from './metadata.ts'

/** The balance of a contract, as the asset contract stores it. */
interface ContractBalance {
  readonly amount: bigint
  readonly authorized: boolean
  readonly clawback: boolean
}

const MAXIMUM = (1n << 127n) - 1n

export const contractBalanceKey = (assetContract: string, holder: string) =>
  contractDataKey(assetContract, variant('Balance', address(holder)))

export function readContractBalance(call: Call, holder: string): ContractBalance | undefined {
  const key = contractBalanceKey(call.contract, holder)
  const data = call.storage.get(key)?.data
  if (data?.type !== 'contractData') return undefined
  call.storage.extend(key, BALANCE_THRESHOLD, BALANCE_EXTENSION)
  const fields = fieldsOf(data.contractData.val)
  return {
    amount: i128Of(fields?.get('amount')) ?? 0n,
    authorized: boolOf(fields?.get('authorized')) ?? false,
    clawback: boolOf(fields?.get('clawback')) ?? false,
  }
}

export function writeContractBalance(call: Call, holder: string, balance: ContractBalance): void {
  const key = contractBalanceKey(call.contract, holder)
  const { amount, authorized, clawback } = balance
  const val = struct({ amount: i128(amount), authorized: bool(authorized), clawback: bool(clawback) })
  call.storage.put(key, contractData(key, val))
  call.storage.extend(key, BALANCE_THRESHOLD, BALANCE_EXTENSION)
}

export function creditContract(call: Call, asset: Asset, holder: string, amount: bigint): void {
  const balance = readContractBalance(call, holder) ?? firstBalance(call, asset)
  if (!balance.authorized) throw contractError(11, 'balance is deauthorized', address(holder))
  if (balance.amount + amount > MAXIMUM)
    throw contractError(12, 'resulting balance overflow', i128(balance.amount), i128(amount))
  writeContractBalance(call, holder, { ...balance, amount: balance.amount + amount })
}

export function debitContract(call: Call, holder: string, amount: bigint): void {
  const balance = readContractBalance(call, holder)
  if (balance && !balance.authorized) throw contractError(11, 'balance is deauthorized', address(holder))
  const present = balance?.amount ?? 0n
  if (present < amount) throw contractError(10, 'balance is not sufficient to spend', i128(present), i128(amount))
  if (balance) writeContractBalance(call, holder, { ...balance, amount: present - amount })
}

/** A new balance takes its flags from the issuer, like a new trustline. */
export function firstBalance(call: Call, asset: Asset): ContractBalance {
  const flags = issuerFlags(call, asset)
  return { amount: 0n, authorized: !(flags & AUTH_REQUIRED), clawback: (flags & AUTH_CLAWBACK) !== 0 }
}
