import { authOf, readAccount } from '#lib/stellar/account.ts'
import type { EntryReader } from '#lib/stellar/entries.ts'
import type { AuthorizedSigners } from './manifest.ts'

/**
 * The signers of an account and the weight that a payment needs, and the ledger of the response. A missing account has no signers.
 * @throws LedgerError `unavailable`
 */
export async function readSigners(rpc: EntryReader, account: string): Promise<AuthorizedSigners & { ledger: number }> {
  const { account: entry, latestLedger: ledger } = await readAccount(rpc, account)
  return entry ? { ...authOf(account, entry), ledger } : { signers: [], thresholds: { medium: 1 }, ledger }
}
