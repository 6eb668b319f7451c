import { xdr } from '@stellar/stellar-sdk'
import { accountId, accountKey, publicKey } from './ledger-key.ts'
import type { State } from './state.ts'

/** reserve per ledger entry of an account, in stroops */
export const BASE_RESERVE = 5_000_000n
/** core's ACCOUNT_SUBENTRY_LIMIT */
export const MAX_SUBENTRIES = 1000
export const INT64_MAX = 2n ** 63n - 1n

export const AUTH_REQUIRED = 1
export const AUTH_REVOCABLE = 2
export const AUTH_IMMUTABLE = 4
export const AUTH_CLAWBACK = 8

export function readAccount(state: State, id: string): xdr.AccountEntry | undefined {
  const data = state.get(accountKey(id))?.data
  return data?.type === 'account' ? data.account : undefined
}

export function writeAccount(state: State, account: xdr.AccountEntry, sequence: number): void {
  const key = accountKey(accountId(account.accountId))
  state.put({ key, data: xdr.LedgerEntryData.account(account), lastModified: sequence })
}

/** A new account: sequence number `ledger << 32`, master weight 1, thresholds 0. */
export function makeAccount(id: string, balance: bigint, sequence: number): xdr.AccountEntry {
  return new xdr.AccountEntry({
    accountId: publicKey(id),
    balance,
    seqNum: startingSequence(sequence),
    numSubEntries: 0,
    inflationDest: null,
    flags: 0,
    homeDomain: '',
    thresholds: new Uint8Array([1, 0, 0, 0]),
    signers: [],
    ext: xdr.AccountEntryExt.v0(),
  })
}

/** The sequence number of an account created in ledger `sequence`. */
export function startingSequence(sequence: number): bigint {
  return BigInt(sequence) << 32n
}

/** The account's reserve in stroops. Without sponsorship, only its own entries count. */
export function minimumBalance(account: xdr.AccountEntry): bigint {
  return BigInt(2 + account.numSubEntries) * BASE_RESERVE
}

/** Spendable stroops; negative below the reserve. Without offers, there are no liabilities. */
export function availableBalance(account: xdr.AccountEntry): bigint {
  return account.balance - minimumBalance(account)
}

export function withBalance(account: xdr.AccountEntry, balance: bigint): xdr.AccountEntry {
  return new xdr.AccountEntry({ ...account, balance })
}

/** CAP-21: the account stores the ledger and time at which it last used a sequence number. */
export function withSequence(
  account: xdr.AccountEntry,
  seqNum: bigint,
  ledger: { sequence: number; closeTime: number },
): xdr.AccountEntry {
  const v3 = new xdr.AccountEntryExtensionV3({
    ext: xdr.ExtensionPoint.v0(),
    seqLedger: ledger.sequence,
    seqTime: BigInt(ledger.closeTime),
  })
  const v2 = new xdr.AccountEntryExtensionV2({
    numSponsored: 0,
    numSponsoring: 0,
    signerSponsoringIDs: account.signers.map(() => null),
    ext: xdr.AccountEntryExtensionV2Ext.v3(v3),
  })
  const v1 = new xdr.AccountEntryExtensionV1({
    liabilities: new xdr.Liabilities({ buying: 0n, selling: 0n }),
    ext: xdr.AccountEntryExtensionV1Ext.v2(v2),
  })
  return new xdr.AccountEntry({ ...account, seqNum, ext: xdr.AccountEntryExt.v1(v1) })
}

/** Ledger and unix time at which the sequence number was last used; zeros if never (CAP-21). */
export function sequenceUse(account: xdr.AccountEntry): { ledger: number; time: bigint } {
  const v1 = account.ext.type === 'v1' ? account.ext.v1.ext : undefined
  const v2 = v1?.type === 'v2' ? v1.v2.ext : undefined
  return v2?.type === 'v3' ? { ledger: v2.v3.seqLedger, time: v2.v3.seqTime } : { ledger: 0, time: 0n }
}

/** Replaces the signers of an account, and the list of their sponsors in its extension. */
export function withSigners(account: xdr.AccountEntry, signers: xdr.Signer[]): xdr.AccountEntry {
  const numSubEntries = account.numSubEntries + signers.length - account.signers.length
  const changed = new xdr.AccountEntry({ ...account, signers, numSubEntries })
  const use = sequenceUse(account)
  if (account.ext.type === 'v0') return changed
  return withSequence(changed, account.seqNum, { sequence: use.ledger, closeTime: Number(use.time) })
}

/** The account with one more subentry, or core's reason for rejecting it. */
export function addSubentry(
  account: xdr.AccountEntry,
): { account: xdr.AccountEntry } | { refusal: 'low-reserve' | 'too-many' } {
  if (account.numSubEntries >= MAX_SUBENTRIES) return { refusal: 'too-many' }
  const grown = new xdr.AccountEntry({ ...account, numSubEntries: account.numSubEntries + 1 })
  return availableBalance(grown) < 0n ? { refusal: 'low-reserve' } : { account: grown }
}

export function dropSubentry(account: xdr.AccountEntry): xdr.AccountEntry {
  return new xdr.AccountEntry({ ...account, numSubEntries: account.numSubEntries - 1 })
}
