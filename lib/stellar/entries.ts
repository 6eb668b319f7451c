import { Address, type rpc, xdr } from '@stellar/stellar-sdk'
import { ledgerUnreachable } from './ledger-error.ts'

/** The part of the RPC client that this file needs. */
export type EntryReader = Pick<rpc.Server, 'getLedgerEntries'>

/** The maximum number of keys per call (stellar-rpc rejects more with -32602). */
export const MOST_KEYS = 200

/**
 * Reads the entries under `keys` (at most 200) in the same order, undefined where the ledger has none, and the ledger of the
 * response. Archived entries count: the RPC returns them with their data.
 * @throws LedgerError `unavailable`, also for a response without a ledger or with an entry that was not requested
 */
export async function readEntries(
  server: EntryReader,
  keys: readonly xdr.LedgerKey[],
): Promise<{ entries: (rpc.Api.LedgerEntryResult | undefined)[]; latestLedger: number }> {
  const keyed = keys.map((key) => [key.toXdr('base64'), key] as const)
  // The RPC rejects a request with a duplicate key.
  const distinct = new Map(keyed)
  const { entries, latestLedger } = await server.getLedgerEntries(...distinct.values()).catch((cause: unknown) => {
    throw ledgerUnreachable(cause)
  })
  // The SDK turns a response without entries into an empty one.
  if (!Number.isSafeInteger(latestLedger)) throw ledgerUnreachable(new Error('the RPC response has no ledger'))
  const byKey = new Map(entries.map((entry) => [entry.key.toXdr('base64'), entry]))
  if ([...byKey].some(([name, { val }]) => distinct.get(name)?.type !== val.type)) {
    throw ledgerUnreachable(new Error('the RPC returned an entry that was not requested'))
  }
  return { entries: keyed.map(([name]) => byKey.get(name)), latestLedger }
}

/** The key of a persistent entry of a contract (C…). */
export function contractKey(contract: string, key: xdr.ScVal): xdr.LedgerKey {
  return xdr.LedgerKey.contractData(
    new xdr.LedgerKeyContractData({
      contract: new Address(contract).toScAddress(),
      key,
      durability: xdr.ContractDataDurability.persistent,
    }),
  )
}

/** Whether a call may extend the lifetime of the entry. Its deployer, not a call, extends that of a contract and its code. */
export const isExtendable = (key: xdr.LedgerKey): boolean =>
  key.type === 'contractData' &&
  key.contractData.durability.name === 'persistent' &&
  key.contractData.key.type !== 'scvLedgerKeyContractInstance'
