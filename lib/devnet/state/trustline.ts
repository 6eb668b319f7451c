import { xdr } from '@stellar/stellar-sdk'
import { AUTH_CLAWBACK, AUTH_REQUIRED } from './account.ts'
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

/** A new trustline, whose flags follow from the issuer's account. */
export function makeTrustline(
  accountId: xdr.PublicKey,
  asset: xdr.TrustLineAsset,
  limit: bigint,
  issuerFlags: number,
): xdr.TrustLineEntry {
  const authorized = issuerFlags & AUTH_REQUIRED ? 0 : TRUSTLINE_AUTHORIZED
  const flags = authorized | (issuerFlags & AUTH_CLAWBACK ? TRUSTLINE_CLAWBACK : 0)
  return new xdr.TrustLineEntry({ accountId, asset, balance: 0n, limit, flags, ext: xdr.TrustLineEntryExt.v0() })
}

export function isAuthorized(line: xdr.TrustLineEntry): boolean {
  return (line.flags & TRUSTLINE_AUTHORIZED) !== 0
}

/** The line with `amount` added, or undefined if that leaves the range from 0 to its limit. */
export function withAmount(line: xdr.TrustLineEntry, amount: bigint): xdr.TrustLineEntry | undefined {
  const balance = line.balance + amount
  return balance < 0n || balance > line.limit ? undefined : new xdr.TrustLineEntry({ ...line, balance })
}
