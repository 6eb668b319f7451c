import { xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { Refusal } from '#lib/http/refusal.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { accountKey, readAccountEntry } from '#lib/stellar/confidential-token.ts'
import type { Network } from '#lib/stellar/network.ts'

/** Where confidential accounts are looked up; without a token there is nothing to be registered with. */
export interface ConfidentialAccounts {
  network: Pick<Network, 'call'>
  token: string | undefined
}

/**
 * What the ledger says of an address. `archived`: registered, and restored by the next call that touches it (CAP-66).
 * `incompatible`: there is an entry, but not such as a confidential token keeps.
 */
export type Registration =
  | { state: 'registered' | 'archived'; pvk: string }
  | { state: 'absent' }
  | { state: 'incompatible' }

/** The keys that an RPC looks up at once (stellar-rpc: more is -32602). */
const KEYS_AT_ONCE = 200

const ENTRIES = z.object({
  latestLedger: z.int().positive(),
  entries: z
    .array(z.object({ key: z.string(), xdr: z.string(), liveUntilLedgerSeq: z.int().optional() }))
    .nullish()
    .transform((entries) => entries ?? []),
})

/**
 * The registrations of `addresses` (G… or C…), one request per 200 different ones. All are answered for, or it throws.
 * @throws Refusal unavailable while the ledger cannot be asked
 */
export async function lookUpRegistrations(
  { network, token }: ConfidentialAccounts,
  addresses: Iterable<string>,
): Promise<Map<string, Registration>> {
  const distinct = [...new Set(addresses)]
  const found = new Map<string, Registration>(distinct.map((address) => [address, { state: 'absent' }]))
  if (token === undefined) return found
  for (let start = 0; start < distinct.length; start += KEYS_AT_ONCE) {
    const part = distinct.slice(start, start + KEYS_AT_ONCE)
    const asked = new Map(part.map((address) => [accountKey(token, address).toXdr('base64'), address]))
    const { entries, latestLedger } = await network.call('getLedgerEntries', { keys: [...asked.keys()] }, ENTRIES)
    for (const entry of entries) {
      const address = asked.get(entry.key)
      // Entries come in any order and only those that are there; what was not asked for is no answer.
      if (address === undefined) throw unreadable(new Error('an entry that was not asked for'))
      found.set(address, registrationOf(entry, latestLedger))
    }
  }
  return found
}

/**
 * The same for callers who go on without the ledger: while it cannot be asked, whatever is not known yet counts as
 * absent, and the next look finds it.
 */
export async function findRegistrations(
  registry: ConfidentialAccounts,
  addresses: Iterable<string>,
): Promise<Map<string, Registration>> {
  try {
    return await lookUpRegistrations(registry, addresses)
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

function registrationOf(
  entry: { xdr: string; liveUntilLedgerSeq?: number | undefined },
  latestLedger: number,
): Registration {
  const { liveUntilLedgerSeq } = entry
  try {
    const read = readAccountEntry({ val: decode(entry.xdr), liveUntilLedgerSeq }, latestLedger)
    return { state: read.archived ? 'archived' : 'registered', pvk: Buffer.from(read.viewingKey).toString('hex') }
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'not-wired') throw error
    log('error', 'registration look-up', { failure: error.message })
    return { state: 'incompatible' }
  }
}

function decode(entry: string): xdr.LedgerEntryData {
  try {
    return xdr.LedgerEntryData.fromXdr(entry, 'base64')
  } catch (cause) {
    throw unreadable(cause)
  }
}

function unreadable(cause: unknown): Refusal {
  return new Refusal('unavailable', 'the ledger cannot be reached', { cause })
}
