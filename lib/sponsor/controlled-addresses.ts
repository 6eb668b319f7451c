import { relayChannels } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'

/** A channel that a relay adds counts as controlled at most this much later. */
const REREAD_MS = 30_000

/**
 * Every address that the service controls: those of the keys that this process has, `known`, and the channels of all
 * relays, whose keys it may not have. None of them may pay, sign or be called.
 */
export function openControlledAddresses(
  known: ReadonlySet<string>,
  now: () => Date,
): (db: Database) => Promise<ReadonlySet<string>> {
  let read: { at: number; addresses: ReadonlySet<string> } | undefined
  return async (db) => {
    const at = now().getTime()
    if (!read || at - read.at > REREAD_MS) {
      const channels = await db.selectDistinct({ address: relayChannels.address }).from(relayChannels)
      read = { at, addresses: new Set([...known, ...channels.map(({ address }) => address)]) }
    }
    return read.addresses
  }
}
