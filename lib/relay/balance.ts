import { publicHalf } from '#lib/config/relay-key.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { readConfidentialAccount } from '#lib/wallet/account.ts'
import { type SyncedBalance, syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import { type Opening, opens } from '#lib/wallet/commitment.ts'
import { WalletError, type WalletErrorCode } from '#lib/wallet/wallet-error.ts'
import { type ChannelRecord, findChannel, setChannel } from './channel-state.ts'
import { submitOwnCall } from './own-call.ts'
import type { Channel, Relay } from './relay.ts'
import { sealBalance, sealOpening, unsealBalance, unsealOpening } from './sealing.ts'

/**
 * Finds the opening (value and blinding) of the channel's spendable balance, if that covers `amount` (base units): from the last
 * payment, else from the ledger's events, else from a merge of what the channel has received. Undefined if the channel has less.
 * @throws WalletError `not-registered`, or `history-incomplete` if the RPC has lost its history; the errors of `submitOwnCall`
 */
export async function openBalance(relay: Relay, channel: Channel, amount: bigint): Promise<Opening | undefined> {
  const record = await findChannel(relay, channel.address)
  if (record?.sealedOpening) {
    const opening = await unsealOpening(relay.key, channel.address, record.sealedOpening).catch(ignore)
    if (opening && opening.value >= amount) return opening
  }
  const balance = await readBalance(relay, channel).catch(async (error: unknown) => {
    // The events are lost: the stored opening matches the ledger, but covers less, and the received balance can't be opened.
    if (isConflict(error) && record && (await opensBalance(relay, channel, record))) return undefined
    throw error
  })
  if (!balance) return undefined
  if (balance.spendable.value >= amount) return balance.spendable
  if (balance.spendable.value + balance.receiving.value < amount) return undefined
  const ledger = await relay.ledger.readLatest()
  const seconds = relay.times.validity
  const signed = await buildMerge(await relay.deployment(), channel.signer, balance, { seconds })
  await submitOwnCall(relay, channel.address, { kind: 'merge', signed, ledger })
  const merged = await readBalance(relay, channel)
  return merged.spendable.value >= amount ? merged.spendable : undefined
}

const CONFLICTS: ReadonlySet<WalletErrorCode> = new Set(['balance-changed', 'history-incomplete', 'other-keys'])

/** True if the stored balance or the RPC's events do not match the ledger's commitment. */
export const isConflict = (error: unknown) => error instanceof WalletError && CONFLICTS.has(error.code)

/** A value that was sealed to an earlier key cannot be opened. It counts as absent, and the ledger is read again. */
const ignore = () => undefined

/** Reads the channel's balance from the ledger's events, from the last reading onward if possible. Stores it sealed. */
export async function readBalance(relay: Relay, channel: Channel): Promise<SyncedBalance> {
  const { key } = relay
  const { address } = channel
  const deployment = await relay.deployment()
  const sealed = (await findChannel(relay, address))?.sealedBalance
  const since = sealed ? await unsealBalance(key, address, sealed).catch(ignore) : undefined
  const balance = await syncBalance(deployment, channel, since).catch((error: unknown) => {
    // The RPC responds that it does not have the cursor, or the ledger was reset: the events are read again from the beginning.
    const isRefused = error instanceof LedgerError && error.cause !== undefined && !(error.cause instanceof Error)
    if (since && (isRefused || isConflict(error))) return syncBalance(deployment, channel)
    throw error
  })
  const to = publicHalf(key)
  const [sealedBalance, sealedOpening] = await Promise.all([
    sealBalance(to, address, balance),
    sealOpening(to, address, balance.spendable),
  ])
  await setChannel(relay, address, { sealedBalance, sealedOpening, readAt: relay.now() })
  return balance
}

/** Whether the stored opening opens the spendable commitment that the ledger has now. */
export async function opensBalance(relay: Relay, channel: Channel, { sealedOpening }: ChannelRecord): Promise<boolean> {
  if (sealedOpening === null) return false
  const opening = await unsealOpening(relay.key, channel.address, sealedOpening).catch(ignore)
  const entry = await readConfidentialAccount(relay.network.server, relay.token, channel.address)
  return opening !== undefined && entry !== undefined && opens(opening, entry.spendable)
}
