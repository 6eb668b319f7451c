import { and, eq, isNotNull } from 'drizzle-orm'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import { markKeyOf } from '#lib/wallet/payment-mark.ts'
import { isChannel } from './channel-state.ts'
import type { Relay } from './relay.ts'
import { sealMarkKey, unsealMarkKey } from './sealing.ts'

/** The mark keys of channels, by address. */
export type MarkKeys = ReadonlyMap<string, Uint8Array>

/**
 * Stores the mark key of each of this relay's channels, sealed to the relays' key, so that any host that has this key can read the
 * channel's marks. If a stored mark key is sealed to an earlier relays' key, it is replaced.
 */
export async function storeMarkKeys({ database, token, channels, key }: Relay): Promise<void> {
  const db = await database()
  for (const { address, keys } of channels) {
    const [row] = await db
      .select({ sealed: relayChannels.sealedMarkKey })
      .from(relayChannels)
      .where(isChannel(token, address))
    if (!row || (row.sealed !== null && (await unsealMarkKey(key, address, row.sealed).catch(() => undefined))))
      continue
    const sealedMarkKey = await sealMarkKey(publicHalf(key), address, markKeyOf(keys.vk))
    await db.update(relayChannels).set({ sealedMarkKey }).where(isChannel(token, address))
  }
}

/** Reads the mark keys of every channel that has stored one for the relays' key, and those of this relay's channels. */
export async function readMarkKeys({ database, token, channels, key, memory }: Relay): Promise<MarkKeys> {
  const { markKeys } = memory
  for (const { address, keys } of channels) if (!markKeys.has(address)) markKeys.set(address, markKeyOf(keys.vk))
  const { address, sealedMarkKey } = relayChannels
  const rows = await (await database())
    .select({ address, sealed: sealedMarkKey })
    .from(relayChannels)
    .where(and(eq(relayChannels.token, token), isNotNull(sealedMarkKey)))
  for (const row of rows) {
    if (markKeys.has(row.address) || row.sealed === null) continue
    // A key that was sealed to another key of relays belongs to their hosts.
    const markKey = await unsealMarkKey(key, row.address, row.sealed).catch(() => undefined)
    if (markKey) markKeys.set(row.address, markKey)
  }
  return markKeys
}
