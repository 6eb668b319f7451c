import { add, decodePoint, encodePoint, type Point } from '#lib/wallet/grumpkin.ts'
import type { Call } from '../contract-function.ts'
import { contractData, contractDataKey, type EntryKey } from '../entry-key.ts'
import { contractError } from '../host-error.ts'
import { variant } from '../instance.ts'
import { address, bytes, bytesOf, fieldsOf, struct, u32, u32Of } from '../scval.ts'

const DAY = 17_280

/** The fields of an account's entry, in their order on the ledger (interface 0.8.0). */
export const ACCOUNT_FIELDS = {
  auditor_id: 'u32',
  receiving_commitment: 'point',
  spendable_commitment: 'point',
  spending_public_key: 'point',
  viewing_public_key: 'point',
} as const

/** A confidential account. Points are 64 bytes. */
export interface ConfidentialAccount {
  readonly auditorId: number
  readonly receiving: Uint8Array
  readonly spendable: Uint8Array
  readonly spendingKey: Uint8Array
  readonly viewingKey: Uint8Array
}

/** The commitment to 0: the identity. */
export const NOTHING: Uint8Array = new Uint8Array(64)

export const confidentialAccountKey = (token: string, account: string): EntryKey =>
  contractDataKey(token, variant('Account', address(account)))

/**
 * Reads an account and extends its lifetime to 30 days if fewer than 29 are left. Error #3501 if it is not registered.
 */
export function readAccount(call: Call, account: string): ConfidentialAccount {
  const state = findAccount(call, account)
  if (!state) throw contractError(3501, `account is not registered: ${account}`)
  return state
}

export function findAccount(call: Call, account: string): ConfidentialAccount | undefined {
  const key = confidentialAccountKey(call.contract, account)
  const data = call.storage.get(key)?.data
  if (data?.type !== 'contractData') return undefined
  call.storage.extend(key, 29 * DAY, 30 * DAY)
  const fields = fieldsOf(data.contractData.val)
  const point = (name: keyof typeof ACCOUNT_FIELDS) => bytesOf(fields?.get(name)) ?? NOTHING
  return {
    auditorId: u32Of(fields?.get('auditor_id')) ?? 0,
    receiving: point('receiving_commitment'),
    spendable: point('spendable_commitment'),
    spendingKey: point('spending_public_key'),
    viewingKey: point('viewing_public_key'),
  }
}

export function writeAccount(call: Call, account: string, state: ConfidentialAccount): void {
  const key = confidentialAccountKey(call.contract, account)
  call.storage.put(key, contractData(key, encodeAccount(state)))
}

export function encodeAccount({ auditorId, receiving, spendable, spendingKey, viewingKey }: ConfidentialAccount) {
  return struct({
    auditor_id: u32(auditorId),
    receiving_commitment: bytes(receiving),
    spendable_commitment: bytes(spendable),
    spending_public_key: bytes(spendingKey),
    viewing_public_key: bytes(viewingKey),
  })
}

/** The sum of a stored commitment and a point. */
export function addCommitment(commitment: Uint8Array, point: Point): Uint8Array {
  return encodePoint(add(decodePoint(commitment), point))
}
