import type { rpc, xdr } from '@stellar/stellar-sdk'
import { Refusal } from '#lib/http/refusal.ts'

/** The part of the RPC client that this file needs. */
export type EntryReader = Pick<rpc.Server, 'getLedgerEntries'>

/**
 * The entries under `keys` (at most 200) in their order, undefined where the ledger has none, and the ledger of the
 * answer. Archived entries count: they come back with their data.
 * @throws Refusal `unavailable`, also for an answer that names no ledger or has what was not asked for
 */
export async function readEntries(
  server: EntryReader,
  keys: readonly xdr.LedgerKey[],
): Promise<{ entries: (rpc.Api.LedgerEntryResult | undefined)[]; latestLedger: number }> {
  // The RPC refuses a question with the same key twice.
  const distinct = new Map(keys.map((key) => [key.toXdr('base64'), key]))
  const { entries, latestLedger } = await server.getLedgerEntries(...distinct.values()).catch((cause: unknown) => {
    throw unreachable(cause)
  })
  // The SDK reads an answer without entries as an empty one.
  if (!Number.isSafeInteger(latestLedger)) throw unreachable(new Error('the RPC answer names no ledger'))
  const wanted = keys.map((key) => key.toXdr('base64'))
  const found = new Map(entries.map((entry) => [entry.key.toXdr('base64'), entry]))
  if ([...found.keys()].some((key) => !wanted.includes(key))) {
    throw unreachable(new Error('the RPC answered with an entry that was not asked for'))
  }
  return { entries: wanted.map((key) => found.get(key)), latestLedger }
}

/** The refusal for an answer that is missing or says something else than was asked. */
export function unreachable(cause: unknown): Refusal {
  return new Refusal('unavailable', 'the ledger cannot be reached', { cause, retryAfter: 5 })
}
