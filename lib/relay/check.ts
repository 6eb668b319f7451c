import { StrKey } from '@stellar/stellar-sdk'
import { and, eq, inArray, notExists } from 'drizzle-orm'
import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import { log } from '#lib/observability/log.ts'
import type { Tracker } from '#lib/transfers/track.ts'
import { readConfidentialAccount, readConfidentialAccounts } from '#lib/wallet/account.ts'
import { isConflict, opensBalance, readBalance } from './balance.ts'
import {
  adoptSequence,
  type ChannelRecord,
  findChannel,
  findChannels,
  recordMove,
  recordProblem,
} from './channel-state.ts'
import type { HeldItem, Item } from './item-row.ts'
import { sequenceNumberOf } from './own-call.ts'
import type { Channel, Relay } from './relay.ts'

/** The highest sequence number: an account that has reached it can sign nothing more. */
const LAST_SEQUENCE = 2n ** 63n - 1n

/** The part of a relay's context that reads accounts from the ledger. */
type LedgerReader = Pick<Relay, 'network' | 'token'> & { sponsor: { tracker: Pick<Tracker, 'readAccount'> } }

/**
 * The problem of each of these accounts, apart from its balance; undefined if it has none. Two RPC calls check 200
 * accounts together.
 * @throws LedgerError
 */
async function diagnoseAll(
  { network, token, sponsor }: LedgerReader,
  addresses: readonly string[],
): Promise<(ChannelProblem | undefined)[]> {
  const [readings, registered] = await Promise.all([
    Promise.all(addresses.map(sponsor.tracker.readAccount)),
    readConfidentialAccounts(network.server, token, addresses),
  ])
  return readings.map(({ account }, index) => {
    if (!account) return 'account'
    if (account.seqNum >= LAST_SEQUENCE) return 'sequence'
    return registered.has(addresses[index] ?? '') ? undefined : 'registration'
  })
}

/** The problem that keeps one account from paying, apart from its balance. @throws LedgerError */
export async function diagnose(relay: LedgerReader, address: string): Promise<ChannelProblem | undefined> {
  return (await diagnoseAll(relay, [address]))[0]
}

/** Whether an address (G… or C…) is registered with the token, and so can be paid. @throws LedgerError */
export async function isRegistered(relay: Pick<Relay, 'network' | 'token'>, address: string): Promise<boolean> {
  return (await readConfidentialAccount(relay.network.server, relay.token, address)) !== undefined
}

/** One malformed row must not keep every relay from comparing the others. */
const isAccount = (address: string): boolean => StrKey.isValidEd25519PublicKey(address)

/**
 * Compares the sequence numbers of all relays' channels with the ledger's: a higher one there means that this database
 * lacks transactions, as after a restore from a backup. A relay takes no item before it has done so, because another
 * relay's channel may have paid that item.
 * @throws LedgerError
 */
export async function compareSequences(relay: Relay): Promise<void> {
  const { token, sponsor } = relay
  const db = await relay.database()
  const addresses = (await findChannels(db, token)).map(({ address }) => address).filter(isAccount)
  const readings = await Promise.all(addresses.map(sponsor.tracker.readAccount))
  const onLedger = new Map(addresses.map((address, index) => [address, readings[index]?.account?.seqNum]))
  // Read after the ledger: a sequence number is recorded before it is used.
  for (const { address, sequenceNumber: recorded } of await findChannels(db, token)) {
    const sequenceNumber = onLedger.get(address)
    if (sequenceNumber === undefined) continue
    if (recorded === null) await adoptSequence(relay, address, sequenceNumber)
    else if (recorded < sequenceNumber) await recordMove(relay, address, sequenceNumber)
  }
}

/** How often an account is read: a node that lags shows an earlier number. */
const READINGS = 4

/**
 * Records the problem `moved` for the channel of an item whose transfer cannot be applied any more, if a transaction that
 * this database lacks has used the transfer's sequence number, as after a restore from a backup: it may have paid the item.
 * @throws LedgerError
 */
export async function suspectMove(relay: Relay, item: Item): Promise<void> {
  const { channel, signedXdr } = item
  if (channel === null || signedXdr === null) return
  const number = sequenceNumberOf(signedXdr, relay.network.passphrase)
  for (let reading = 0; reading < READINGS; reading += 1) {
    const { account } = await relay.sponsor.tracker.readAccount(channel)
    if (!account || account.seqNum < number) continue
    if (await isKnownUse(relay, { ...item, channel }, number)) return
    log('error', 'channel moved', { channel })
    return await recordProblem(relay, channel, 'moved')
  }
}

/**
 * Whether a merge of the channel has used the number, or a recorded transfer other than the item's. The item's transfer was
 * then signed with the number that a lagging node showed.
 */
async function isKnownUse(relay: Relay, { channel, innerHash }: HeldItem, number: bigint): Promise<boolean> {
  const { ownCallSequence = null } = (await findChannel(relay, channel)) ?? {}
  if (ownCallSequence !== null && number <= ownCallSequence) return true
  const db = await relay.database()
  const isItems = and(eq(envelopes.transfer, transfers.id), eq(envelopes.innerHash, innerHash ?? ''))
  const isOther = and(
    eq(transfers.account, channel),
    eq(transfers.sequenceNumber, number),
    inArray(transfers.status, ['succeeded', 'failed', 'unknown']),
    notExists(db.select().from(envelopes).where(isItems)),
  )
  return (await db.$count(transfers, isOther)) > 0
}

/**
 * Compares the relay's channels with the ledger, and records or clears their problems. Also reads the events of free
 * channels in time, because an RPC keeps events for some days only.
 * @throws LedgerError
 */
export async function checkChannels(relay: Relay): Promise<void> {
  const { token, channels } = relay
  const rows = await findChannels(await relay.database(), token)
  const records = new Map(rows.map((record) => [record.address, record]))
  const problems = await diagnoseAll(
    relay,
    channels.map(({ address }) => address),
  )
  for (const [index, channel] of channels.entries()) {
    if (relay.signal.aborted) return
    const record = records.get(channel.address)
    const problem = problems[index]
    if (record?.problem === 'moved') continue
    if (problem || !record) await recordProblem(relay, channel.address, problem ?? null)
    else if (record.itemJob === null && isBalanceDue(relay, record)) await checkBalance(relay, channel, record)
    else if (record.problem !== 'balance' && record.problem !== 'history') {
      await recordProblem(relay, channel.address, null)
    }
  }
}

/** Whether it is time to read a channel's events, which alone show its balance. */
function isBalanceDue({ times, now }: Relay, { problem, readAt }: ChannelRecord): boolean {
  return problem !== null || readAt === null || readAt.getTime() + times.refresh * 1000 <= now().getTime()
}

async function checkBalance(relay: Relay, channel: Channel, record: ChannelRecord): Promise<void> {
  const balance = await readBalance(relay, channel).catch((error: unknown) => {
    if (isConflict(error)) return undefined
    throw error
  })
  // Without events the channel can still pay, as long as the stored opening fits the balance on the ledger.
  const isLost = !balance && !(await opensBalance(relay, channel, record))
  const isEmpty = balance && balance.spendable.value + balance.receiving.value === 0n
  const problem = isLost ? 'history' : isEmpty ? 'balance' : null
  await recordProblem(relay, channel.address, problem)
}
