import type { xdr } from '@stellar/stellar-sdk'
import { describeFailure, log } from '#lib/observability/log.ts'
import { findAccounts, readAccountEntry } from '#lib/stellar/confidential-token.ts'
import type { EntryReader } from '#lib/stellar/entries.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'

/** Where to look up confidential accounts. Without a token no address is registered. */
export interface ConfidentialAccounts {
  network: { server: EntryReader }
  token: string | undefined
}

/**
 * The public viewing key (128 hex digits) of each registered address. Archived entries count: the next call that
 * touches one restores it (CAP-66). Null: the entry was not written by a confidential token.
 */
export type ViewingKeys = ReadonlyMap<string, string | null>

/**
 * Looks up the registrations of `addresses` (G… or C…), one request per 200 distinct ones.
 * @throws LedgerError `unavailable` while the ledger cannot be reached
 */
export async function lookUpViewingKeys(
  { network, token }: ConfidentialAccounts,
  addresses: Iterable<string>,
): Promise<ViewingKeys> {
  if (token === undefined) return new Map()
  const entries = await findAccounts(network.server, token, [...new Set(addresses)])
  return new Map([...entries].map(([address, data]) => [address, viewingKeyOf(data)]))
}

/**
 * Looks up registrations for a caller that can continue without the ledger. While the ledger cannot be reached, returns
 * no registrations; a later lookup finds them.
 */
export async function findViewingKeys(
  accounts: ConfidentialAccounts,
  addresses: readonly (string | null | undefined)[],
): Promise<ViewingKeys> {
  try {
    return await lookUpViewingKeys(
      accounts,
      addresses.flatMap((address) => address ?? []),
    )
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error
    log('error', 'registration look-up', { failure: describeFailure(error) })
    return new Map()
  }
}

function viewingKeyOf(data: xdr.LedgerEntryData): string | null {
  try {
    return Buffer.from(readAccountEntry(data).viewingKey).toString('hex')
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'foreign-contract') throw error
    log('error', 'registration look-up', { failure: error.message })
    return null
  }
}
