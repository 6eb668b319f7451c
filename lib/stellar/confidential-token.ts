import { Address, scValToNative, xdr } from '@stellar/stellar-sdk'
import { contractKey, type EntryReader, MAX_KEYS, readEntries } from './entries.ts'
import { LedgerError } from './ledger-error.ts'

/**
 * The contract error of a transfer whose proof does not match the sender's balance: the balance has changed since, or
 * the proof was never valid (interface 0.8.0).
 */
export const STALE_PROOF = 3506

/** The contract errors of a payment that the token refuses because an account is frozen (interface 0.8.0). */
export const FROZEN_ERRORS = [3601, 3602, 3603] as const

/** A confidential account on the ledger. Keys are public points of 64 bytes. */
export interface AccountEntry {
  auditorId: number
  viewingKey: Uint8Array
  /** These three have other names in other versions of the contract; undefined under an unknown name. */
  spendingKey: Uint8Array | undefined
  spendable: Uint8Array | undefined
  receiving: Uint8Array | undefined
}

/**
 * The ledger key of an address's (G… or C…) confidential account in a token contract: ("Account", address), persistent.
 */
export function accountKey(token: string, address: string): xdr.LedgerKey {
  return contractKey(token, xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('Account'), new Address(address).toScVal()]))
}

/**
 * Reads the entries of the confidential accounts of `addresses` (G… or C…), one request per 200 distinct ones. An address
 * that is not registered has no entry. An archived entry counts, because the next call that touches it restores it (CAP-66).
 * @throws LedgerError
 */
export async function findAccounts(
  server: EntryReader,
  token: string,
  addresses: Iterable<string>,
): Promise<Map<string, xdr.LedgerEntryData>> {
  const distinct = [...new Set(addresses)]
  const byAddress = new Map<string, xdr.LedgerEntryData>()
  for (let start = 0; start < distinct.length; start += MAX_KEYS) {
    const part = distinct.slice(start, start + MAX_KEYS)
    const { entries } = await readEntries(
      server,
      part.map((address) => accountKey(token, address)),
    )
    for (const [index, address] of part.entries()) {
      const entry = entries[index]
      if (entry) byAddress.set(address, entry.val)
    }
  }
  return byAddress
}

/**
 * Reads the entry of an `accountKey`.
 * @throws LedgerError `foreign-contract` for an entry without a viewing key and an auditor: the configured contract is
 *   not a confidential token, so the entry does not show whether the address is registered
 */
export function readAccountEntry(data: xdr.LedgerEntryData): AccountEntry {
  const fields = fieldsOf(data)
  const viewingKey = point(fields, 'viewing_public_key')
  const auditorId = fields.auditor_id
  if (!viewingKey || typeof auditorId !== 'number') {
    throw new LedgerError(
      'foreign-contract',
      'the configured contract does not store accounts as a confidential token does',
    )
  }
  return {
    auditorId,
    viewingKey,
    spendingKey: point(fields, 'spending_public_key', 'spending_key'),
    spendable: point(fields, 'spendable_commitment', 'spendable_balance'),
    receiving: point(fields, 'receiving_commitment', 'receiving_balance'),
  }
}

/** The escrow that an owner has delegated to a spender, under the names of interface 0.8.0. */
export interface DelegationEntry {
  a_tilde: Uint8Array
  allowance_commitment: Uint8Array
  allowance_salt: Uint8Array
  escrowed_dvk: Uint8Array
  /** the last ledger in which the spender can pay */
  live_until_ledger: number
}

/** The ledger key of a delegation in a token contract: ("Delegation", owner, spender), persistent. */
export function delegationKey(token: string, { owner, spender }: { owner: string; spender: string }): xdr.LedgerKey {
  const addresses = [owner, spender].map((address) => new Address(address).toScVal())
  return contractKey(token, xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('Delegation'), ...addresses]))
}

/**
 * Reads the entry of a `delegationKey`.
 * @throws LedgerError `foreign-contract` for an entry that isn't a delegation of interface 0.8.0
 */
export function readDelegationEntry(data: xdr.LedgerEntryData): DelegationEntry {
  const fields = fieldsOf(data)
  const [a_tilde, allowance_salt] = [bytesOf(fields, 32, 'a_tilde'), bytesOf(fields, 32, 'allowance_salt')]
  const [allowance_commitment, escrowed_dvk] = [point(fields, 'allowance_commitment'), point(fields, 'escrowed_dvk')]
  const { live_until_ledger } = fields
  if (!a_tilde || !allowance_salt || !allowance_commitment || !escrowed_dvk || typeof live_until_ledger !== 'number') {
    throw new LedgerError(
      'foreign-contract',
      'the configured contract does not store delegations as a confidential token does',
    )
  }
  return { a_tilde, allowance_commitment, allowance_salt, escrowed_dvk, live_until_ledger }
}

function fieldsOf(data: xdr.LedgerEntryData): Record<string, unknown> {
  if (data.type !== 'contractData' || data.contractData.val.type !== 'scvMap') return {}
  const native: unknown = scValToNative(data.contractData.val)
  return typeof native === 'object' && native !== null ? Object.fromEntries(Object.entries(native)) : {}
}

const point = (fields: Record<string, unknown>, ...names: string[]) => bytesOf(fields, 64, ...names)

function bytesOf(fields: Record<string, unknown>, length: number, ...names: string[]): Uint8Array | undefined {
  for (const name of names) {
    const value = fields[name]
    if (value instanceof Uint8Array && value.length === length) return value
  }
  return undefined
}
