import type { xdr } from '@stellar/stellar-sdk'
import type { Call } from '../contract-function.ts'
import { contractData, contractDataKey, type EntryKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'
import { variant } from '../instance.ts'
import { address, bytes, bytesOf, fieldsOf, struct, u32, u32Of } from '../scval.ts'
import { NOTHING } from './account.ts'

const DAY = 17_280

/** The fields of a delegation's entry, in their order on the ledger (interface 0.8.0). */
export const DELEGATION_FIELDS = {
  a_tilde: 'field',
  allowance_commitment: 'point',
  allowance_salt: 'field',
  escrowed_dvk: 'point',
  live_until_ledger: 'u32',
} as const

/** An allowance that its owner has escrowed for one spender. */
export interface Delegation {
  readonly commitment: Uint8Array
  readonly ciphertext: Uint8Array
  readonly salt: Uint8Array
  /** The delegation's viewing key, encrypted to the spender: 64 bytes that are not a point. */
  readonly escrow: Uint8Array
  /** The last ledger in which the spender can pay. */
  readonly liveUntil: number
}

export const delegationKey = (token: string, owner: string, spender: string): EntryKey =>
  contractDataKey(token, variant('Delegation', address(owner), address(spender)))

/** Reads a delegation and extends its lifetime to 30 days if fewer than 29 are left. Error #3504 if there is none. */
export function readDelegation(call: Call, owner: string, spender: string): Delegation {
  const delegation = findDelegation(call, owner, spender)
  if (!delegation) throw contractError(3504, `there is no delegation of ${owner} to ${spender}`)
  return delegation
}

export function findDelegation(call: Call, owner: string, spender: string): Delegation | undefined {
  const key = delegationKey(call.contract, owner, spender)
  const data = call.storage.get(key)?.data
  if (data?.type !== 'contractData') return undefined
  call.storage.extend(key, 29 * DAY, 30 * DAY)
  const fields = fieldsOf(data.contractData.val)
  const content = (name: keyof typeof DELEGATION_FIELDS) => bytesOf(fields?.get(name)) ?? NOTHING
  return {
    commitment: content('allowance_commitment'),
    ciphertext: content('a_tilde'),
    salt: content('allowance_salt'),
    escrow: content('escrowed_dvk'),
    liveUntil: u32Of(fields?.get('live_until_ledger')) ?? 0,
  }
}

/** Whether there is an entry, even an expired one. Doesn't extend its lifetime. */
export function hasDelegation(call: Call, owner: string, spender: string): boolean {
  return call.storage.get(delegationKey(call.contract, owner, spender)) !== undefined
}

export function writeDelegation(call: Call, owner: string, spender: string, delegation: Delegation): void {
  const key = delegationKey(call.contract, owner, spender)
  call.storage.put(key, contractData(key, encodeDelegation(delegation)))
}

export function encodeDelegation({ commitment, ciphertext, salt, escrow, liveUntil }: Delegation): xdr.ScVal {
  return struct({
    a_tilde: bytes(ciphertext),
    allowance_commitment: bytes(commitment),
    allowance_salt: bytes(salt),
    escrowed_dvk: bytes(escrow),
    live_until_ledger: u32(liveUntil),
  })
}
