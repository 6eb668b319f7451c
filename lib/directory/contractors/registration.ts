import { Refusal } from '#lib/http/refusal.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { type FoundAccount, findAccounts, readAccountEntry } from '#lib/stellar/confidential-token.ts'
import type { EntryReader } from '#lib/stellar/entries.ts'

/** Where confidential accounts are looked up; without a token there is nothing to be registered with. */
export interface ConfidentialAccounts {
  network: { server: EntryReader }
  token: string | undefined
}

/** What a verb works with that looks up confidential accounts. */
export interface LedgerContext {
  accounts: ConfidentialAccounts
}

/**
 * What the ledger says of an address. `archived`: registered, and restored by the next call that touches it (CAP-66).
 * `incompatible`: there is an entry, but not such as a confidential token keeps.
 */
export type Registration =
  | { state: 'registered' | 'archived'; pvk: string }
  | { state: 'absent' }
  | { state: 'incompatible' }

/**
 * The registrations of `addresses` (G… or C…), one request per 200 different ones. All are answered for, or it throws.
 * @throws Refusal `unavailable` while the ledger cannot be asked
 */
export async function lookUpRegistrations(
  { network, token }: ConfidentialAccounts,
  addresses: Iterable<string>,
): Promise<Map<string, Registration>> {
  const distinct = [...new Set(addresses)]
  const found = token === undefined ? new Map() : await findAccounts(network.server, token, distinct)
  return new Map(distinct.map((address) => [address, registrationOf(found.get(address))]))
}

/**
 * Looks up registrations for a caller who goes on without the ledger: while it cannot be asked, an unknown address counts
 * as absent, and the next look-up finds it.
 */
export async function findRegistrations(
  accounts: ConfidentialAccounts,
  addresses: Iterable<string>,
): Promise<Map<string, Registration>> {
  try {
    return await lookUpRegistrations(accounts, addresses)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    log('error', 'registration look-up', { failure: describeFailure(error) })
    return new Map()
  }
}

/** The public viewing key, 128 hex digits, of an address that is registered. */
export function viewingKeyOf(registration: Registration | undefined): string | undefined {
  return registration && 'pvk' in registration ? registration.pvk : undefined
}

function registrationOf(found: FoundAccount | undefined): Registration {
  if (!found) return { state: 'absent' }
  try {
    const { archived, viewingKey } = readAccountEntry(found.entry, found.latestLedger)
    return { state: archived ? 'archived' : 'registered', pvk: Buffer.from(viewingKey).toString('hex') }
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'not-wired') throw error
    log('error', 'registration look-up', { failure: error.message })
    return { state: 'incompatible' }
  }
}
