import { setImmediate } from 'node:timers/promises'
import { and, eq, isNotNull } from 'drizzle-orm'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { publicHalf } from '#lib/config/relay-key.ts'
import type { Line } from '#lib/transfers/line.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { isMarkedFor, markedSource, markKeyOf } from '#lib/wallet/payment-mark.ts'
import type { Allowance } from '#lib/wallet/spending.ts'
import type { TokenEvent } from './channel-events.ts'
import { findChannel, setChannel } from './channel-state.ts'
import type { Channel, Relay } from './relay.ts'
import { sealMarkKey, unsealMarkKey } from './sealing.ts'

/** What a payment pays: a payout, or a line of a job. */
export const purposeOf = ({ payout, job, position }: Pick<Line, 'payout' | 'job' | 'position'>): string =>
  payout ?? `${job}/${position}`

/** A deployment whose proofs are marked with a payment's purpose: for the channel and, from an escrow, for its owner. */
export function markSalts(deployment: Deployment, { keys }: Channel, line: Line, allowance?: Allowance): Deployment {
  const delegation = allowance && markKeyOf(allowance.delegationKey)
  return { ...deployment, random: markedSource({ signer: markKeyOf(keys.vk), delegation }, purposeOf(line)) }
}

/** After this many marks, other work of the process gets a turn. */
const PART = 500

/** Finds the first candidate whose payment is marked with its purpose. Callers also compare the payee, which a mark does not contain. */
export async function findMarked<Candidate>(
  markKeys: MarkKeys,
  candidates: Iterable<Candidate>,
  marked: (candidate: Candidate) => { payment: Marked; purpose: string },
): Promise<Candidate | undefined> {
  let read = 0
  for (const candidate of candidates) {
    const { payment, purpose } = marked(candidate)
    const markKey = markKeys.get(payment.channel)
    if (markKey && isMarked(markKey, payment, purpose)) return candidate
    read += 1
    if (read % PART === 0) await setImmediate()
  }
  return undefined
}

/** The mark keys of channels, by address. */
export type MarkKeys = ReadonlyMap<string, Uint8Array>

/** The parts of a payment by which its mark is read. */
type Marked = Pick<TokenEvent, 'salt' | 'from' | 'channel'>

/** Whether a channel's payment was made for this purpose, by the channel's mark key. */
export const isMarked = (markKey: Uint8Array, { salt, from, channel }: Marked, purpose: string): boolean =>
  isMarkedFor({ signer: markKey }, salt, purpose, from !== channel)

/** Stores this relay's mark keys, sealed to the relays' key for any host that has it. Those sealed to an earlier key are replaced. */
export async function storeMarkKeys(relay: Relay): Promise<void> {
  const { channels, key } = relay
  for (const { address, keys } of channels) {
    const record = await findChannel(relay, address)
    const sealed = record?.sealedMarkKey
    if (!record || (sealed && (await unsealMarkKey(key, address, sealed).catch(() => undefined)))) continue
    const sealedMarkKey = await sealMarkKey(publicHalf(key), address, markKeyOf(keys.vk))
    await setChannel(relay, address, { sealedMarkKey })
  }
}

/** The mark key of a channel, sealed to the relays' key; null if this relay does not know it. */
export async function sealMarkKeyOf(relay: Relay, channel: string): Promise<string | null> {
  const markKey = (await readMarkKeys(relay)).get(channel)
  return markKey ? await sealMarkKey(publicHalf(relay.key), channel, markKey) : null
}

/** Reads the mark keys of every channel that has stored one for the relays' key, and those of this relay's channels. */
export async function readMarkKeys({ database, token, channels, key, memory }: Relay): Promise<MarkKeys> {
  const { markKeys } = memory
  for (const { address, keys } of channels) if (!markKeys.has(address)) markKeys.set(address, markKeyOf(keys.vk))
  const { address, sealedMarkKey: sealed } = relayChannels
  const isStored = and(eq(relayChannels.token, token), isNotNull(sealed))
  const rows = await (await database()).select({ address, sealed }).from(relayChannels).where(isStored)
  for (const row of rows) {
    if (markKeys.has(row.address) || row.sealed === null) continue
    // A key that was sealed to another key of relays belongs to their hosts.
    const markKey = await unsealMarkKey(key, row.address, row.sealed).catch(() => undefined)
    if (markKey) markKeys.set(row.address, markKey)
  }
  return markKeys
}
