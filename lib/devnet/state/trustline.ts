import { xdr } from '@stellar/stellar-sdk'
import { accountId, trustlineKey } from './ledger-key.ts'
import type { State } from './state.ts'

export const TRUSTLINE_AUTHORIZED = 1
export const TRUSTLINE_CLAWBACK = 4

export function readTrustline(state: State, id: string, asset: xdr.TrustLineAsset): xdr.TrustLineEntry | undefined {
  const data = state.get(trustlineKey(id, asset))?.data
  return data?.type === 'trustline' ? data.trustLine : undefined
}

export function writeTrustline(state: State, line: xdr.TrustLineEntry, sequence: number): void {
  const key = trustlineKey(accountId(line.accountId), line.asset)
  state.put({ key, data: xdr.LedgerEntryData.trustline(line), lastModified: sequence })
}

export function isAuthorized(line: xdr.TrustLineEntry): boolean {
  return (line.flags & TRUSTLINE_AUTHORIZED) !== 0
}

/** The line with `amount` more (or less), or undefined where that leaves the range from 0 to its limit. */
export function withAmount(line: xdr.TrustLineEntry, amount: bigint): xdr.TrustLineEntry | undefined {
  const balance = line.balance + amount
  return balance < 0n || balance > line.limit ? undefined : new xdr.TrustLineEntry({ ...line, balance })
}
