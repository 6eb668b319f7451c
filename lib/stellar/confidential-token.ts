import { Address, type rpc, scValToNative, xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'

/** A confidential account as the ledger holds it. Keys are points of 64 bytes, never secret. */
export interface AccountEntry {
  auditorId: number
  viewingKey: Uint8Array
  /** These three have changed their names between versions of the contract: undefined if under none that we know. */
  spendingKey: Uint8Array | undefined
  spendable: Uint8Array | undefined
  receiving: Uint8Array | undefined
  /** Expired, not lost: a call that touches it restores it, if it was simulated after the expiry (CAP-66). */
  archived: boolean
  /** Last ledger in which the entry lives; 0 once archived. */
  liveUntilLedger: number
}

/** Where a token contract keeps the confidential account of an address (G… or C…): ("Account", address), persistent. */
export function accountKey(token: string, address: string): xdr.LedgerKey {
  return xdr.LedgerKey.contractData(
    new xdr.LedgerKeyContractData({
      contract: new Address(token).toScAddress(),
      key: xdr.ScVal.scvVec([xdr.ScVal.scvSymbol('Account'), new Address(address).toScVal()]),
      durability: xdr.ContractDataDurability.persistent,
    }),
  )
}

/**
 * Reads what getLedgerEntries returned for an `accountKey`; `latestLedger` is that of the same answer. An entry that is
 * not there was never registered. One without viewing key and auditor is Refusal `not-wired`: the configured contract
 * is no confidential token, and nothing about the address follows.
 */
export function readAccountEntry(
  entry: Pick<rpc.Api.LedgerEntryResult, 'val' | 'liveUntilLedgerSeq'>,
  latestLedger: number,
): AccountEntry {
  const fields = fieldsOf(entry.val)
  const viewingKey = point(fields, 'viewing_public_key')
  const auditorId = fields.auditor_id
  if (!viewingKey || typeof auditorId !== 'number') {
    throw new Refusal('not-wired', 'the configured contract does not keep its accounts as a confidential token does')
  }
  const liveUntilLedger = entry.liveUntilLedgerSeq ?? 0
  return {
    auditorId,
    viewingKey,
    spendingKey: point(fields, 'spending_public_key', 'spending_key'),
    spendable: point(fields, 'spendable_commitment', 'spendable_balance'),
    receiving: point(fields, 'receiving_commitment', 'receiving_balance'),
    archived: liveUntilLedger < latestLedger,
    liveUntilLedger,
  }
}

function fieldsOf(data: xdr.LedgerEntryData): Record<string, unknown> {
  if (data.type !== 'contractData' || data.contractData.val.type !== 'scvMap') return {}
  const native: unknown = scValToNative(data.contractData.val)
  return typeof native === 'object' && native !== null ? Object.fromEntries(Object.entries(native)) : {}
}

function point(fields: Record<string, unknown>, ...names: string[]): Uint8Array | undefined {
  for (const name of names) {
    const value = fields[name]
    if (value instanceof Uint8Array && value.length === 64) return value
  }
  return undefined
}
