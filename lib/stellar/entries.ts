import { Address, type rpc, xdr } from '@stellar/stellar-sdk'
import { ledgerUnreachable } from './ledger-error.ts'

/** The part of the RPC client that this file needs. */
export type EntryReader = Pick<rpc.Server, 'getLedgerEntries'>

/** The keys that an RPC looks up in one call (stellar-rpc: more is -32602). */
export const MOST_KEYS = 200

/**
 * The entries under `keys` (at most 200) in their order, undefined where the ledger has none, and the ledger of the
 * answer. Archived entries count: they come back with their data.
 * @throws LedgerError `unavailable`, also for an answer that names no ledger or has what was not asked for
 */
export async function readEntries(
  server: EntryReader,
  keys: readonly xdr.LedgerKey[],
): Promise<{ entries: (rpc.Api.LedgerEntryResult | undefined)[]; latestLedger: number }> {
  const wanted = keys.map((key) => [key.toXdr('base64'), key] as const)
  // The RPC refuses a question with the same key twice.
  const distinct = new Map(wanted)
  const { entries, latestLedger } = await server.getLedgerEntries(...distinct.values()).catch((cause: unknown) => {
    throw ledgerUnreachable(cause)
  })
  // The SDK reads an answer without entries as an empty one.
  if (!Number.isSafeInteger(latestLedger)) throw ledgerUnreachable(new Error('the RPC answer names no ledger'))
  const found = new Map(entries.map((entry) => [entry.key.toXdr('base64'), entry]))
  if ([...found].some(([name, { val }]) => distinct.get(name)?.type !== val.type)) {
    throw ledgerUnreachable(new Error('the RPC answered with an entry that was not asked for'))
  }
  return { entries: wanted.map(([name]) => found.get(name)), latestLedger }
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
