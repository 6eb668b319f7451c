import { StrKey } from '@stellar/stellar-sdk'
import { and, eq, inArray, isNull, notExists, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { batchJobs, relayChannels } from '#drizzle/schema/relay.ts'
import { envelopes, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import { askUntilRecent } from '#lib/transfers/recency.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { readConfidentialAccount } from '#lib/wallet/account.ts'
import { readTokenEvents } from './channel-events.ts'
import {
  type ChannelRecord,
  type ChannelStore,
  findChannel,
  findChannels,
  isChannel,
  recordProblem,
} from './channel-state.ts'
import { ItemError } from './item-error.ts'
import type { HeldItem, Item } from './item-row.ts'
import type { Relay } from './relay.ts'

/** The source account's sequence number that a signed transaction (base64 XDR) uses. */
export function sequenceNumberOf(signedXdr: string, passphrase: string): bigint {
  return decodeEnvelope(signedXdr, passphrase).envelope.tx.seqNum
}

/**
 * Records the sequence number of a transaction that the channel signs, before the transaction is submitted. The number
 * before it is the ledger's: if that is higher than the recorded one, transactions were applied that this database
 * does not have, as after a restore from a backup.
 * @param given.mayBeFirst whether the channel may sign before its number was adopted, as it does to register
 * @throws ItemError `channel-unfit`, with the problem `moved`, and `not-adopted`: the transaction must not be submitted
 */
export async function claimSequence(
  db: Database,
  token: string,
  { address, sequenceNumber, mayBeFirst }: { address: string; sequenceNumber: bigint; mayBeFirst: boolean },
): Promise<void> {
  const { sequenceNumber: recorded } = relayChannels
  const claimed = await db
    .update(relayChannels)
    .set({ sequenceNumber: sql`greatest(${recorded}, ${sequenceNumber})` })
    .where(
      and(
        isChannel(token, address),
        sql`${relayChannels.problem} IS DISTINCT FROM 'moved'`,
        sql`coalesce(${recorded} >= ${sequenceNumber - 1n}, ${mayBeFirst})`,
      ),
    )
    .returning({ address: relayChannels.address })
  if (claimed.length > 0) return
  const [channel] = await db.select({ recorded }).from(relayChannels).where(isChannel(token, address))
  if (channel?.recorded === null) throw new ItemError('not-adopted', 'the channel was not compared with the ledger yet')
  throw new ItemError('channel-unfit', `channel ${address} has moved: see npm run relay -- --help`, {
    problem: 'moved',
  })
}

/**
 * Records the problem `moved` if the ledger's sequence number is higher than the recorded one. One statement compares
 * and records: an operator may release the channel at the same time. A channel that has moved already moves again if
 * its number has risen: it was released and has paid after the backup that was restored, so it may have paid items
 * queued in the meantime.
 */
async function recordMove(store: ChannelStore, address: string, sequenceNumber: bigint): Promise<void> {
  const { problem, movedSequence, sequenceNumber: recorded } = relayChannels
  const known = sql`CASE WHEN ${problem} = 'moved' THEN coalesce(${movedSequence}, ${recorded}) ELSE ${recorded} END`
  await (await store.database())
    .update(relayChannels)
    .set({ problem: 'moved', movedAt: sql`clock_timestamp()`, movedSequence: sequenceNumber })
    .where(and(isChannel(store.token, address), sql`${known} < ${sequenceNumber}`))
}

/** The statuses of a decided transfer that has used its sequence number on the ledger, or may have. */
const MAY_HAVE_USED = ['succeeded', 'failed', 'unknown'] as const

/**
 * Records the problem `moved` if the ledger's sequence number is the recorded one, and nothing that this database knows has
 * used it: an envelope with this number was dropped, and a later one is lost, as after a restore from a backup. The
 * number must have been read before this call: a transfer is recorded before it is sent.
 */
async function recordUnknownUse(store: ChannelStore, address: string, sequenceNumber: bigint): Promise<void> {
  const db = await store.database()
  const { problem, sequenceNumber: recorded, adoptedSequence } = relayChannels
  const isUse = and(
    eq(transfers.account, address),
    eq(transfers.sequenceNumber, sequenceNumber),
    inArray(transfers.status, ['open', ...MAY_HAVE_USED]),
  )
  await db
    .update(relayChannels)
    .set({ problem: 'moved', movedAt: sql`clock_timestamp()`, movedSequence: sequenceNumber })
    .where(
      and(
        isChannel(store.token, address),
        eq(recorded, sequenceNumber),
        sql`${problem} IS DISTINCT FROM 'moved'`,
        sql`coalesce(${adoptedSequence} < ${sequenceNumber}, true)`,
        notExists(db.select().from(transfers).where(isUse)),
      ),
    )
}

/**
 * Adopts the ledger's sequence number for a channel that has none, if every payment that it has made is recorded. Otherwise
 * the channel has moved: it may be newer than the backup from which this database was restored.
 * @throws LedgerError
 */
async function adoptSequence(
  relay: Relay,
  { address, problem }: ChannelRecord,
  { sequenceNumber, ledger }: { sequenceNumber: bigint; ledger: number },
): Promise<void> {
  if (problem === 'moved') return
  const isUnused = (sequenceNumber & COUNT_OF_TRANSACTIONS) <= 1n
  const isKnown = isUnused || (await arePaymentsKnown(relay, address, ledger))
  if (!isKnown) log('error', 'channel moved', { channel: address })
  await (await relay.database())
    .update(relayChannels)
    .set(
      isKnown
        ? { sequenceNumber, adoptedSequence: sequenceNumber }
        : { problem: 'moved', movedAt: sql`clock_timestamp()`, movedSequence: sequenceNumber },
    )
    .where(and(isChannel(relay.token, address), isNull(relayChannels.sequenceNumber)))
}

/** An account's first sequence number has its ledger in the upper half: the lower half counts its transactions. */
const COUNT_OF_TRANSACTIONS = 0xffff_ffffn

/**
 * Whether the database records each payment of a channel, or has nothing that could have been paid.
 * @param ledger the ledger of the account's reading, up to which the events must reach
 */
async function arePaymentsKnown(relay: Relay, address: string, ledger: number): Promise<boolean> {
  const db = await relay.database()
  const [payout] = await db.select({ id: payouts.id }).from(payouts).limit(1)
  const [job] = await db.select({ id: batchJobs.id }).from(batchJobs).limit(1)
  if (!payout && !job) return true
  const { transfers: payments, latestLedger, isWhole } = await readTokenEvents(relay, address, undefined)
  if (latestLedger < ledger) throw new LedgerError('unavailable', 'the RPC’s events are behind its ledger')
  // A channel that is not registered yet has no events.
  if (!isWhole) return !(await readConfidentialAccount(relay.network.server, relay.token, address))
  for (const { hash } of payments) if (!(await findTransferOfHash(db, hash))) return false
  return true
}

/** One malformed row must not keep every relay from comparing the others. */
const isAccount = (address: string): boolean => StrKey.isValidEd25519PublicKey(address)

/**
 * Compares the sequence numbers of all relays' channels with the ledger's: a higher one there means that this database
 * lacks transactions, as after a restore from a backup. A relay takes no item before it has done so with `since`, because
 * another relay's channel may have paid that item.
 * @param since when the relay started, unix ms by the database's clock: the responses must show every transaction until
 *   then
 * @throws LedgerError; also thrown until a ledger has closed after `since`
 */
export async function compareSequences(relay: Relay, since?: number): Promise<void> {
  const { token } = relay
  // Later comparisons share the readings of the payments.
  const { readAccount } = since === undefined ? relay.memory : relay.sponsor.tracker
  const db = await relay.database()
  const ledger = since === undefined ? 0 : await relay.ledger.readClosedAfter(since)
  const addresses = (await findChannels(db, token)).map(({ address }) => address).filter(isAccount)
  const { response: readings, isRecent } = await askUntilRecent(
    () => Promise.all(addresses.map(readAccount)),
    (responses) => responses.every(({ latestLedger }) => latestLedger >= ledger),
  )
  if (!isRecent) throw new LedgerError('unavailable', 'the RPC lags behind the start of the relay')
  const onLedger = new Map(addresses.map((address, index) => [address, readings[index]]))
  const compared: string[] = []
  // Read after the ledger: a sequence number is recorded before it is used.
  for (const channel of await findChannels(db, token)) {
    const { address, sequenceNumber: recorded } = channel
    const reading = onLedger.get(address)
    const sequenceNumber = reading?.account?.seqNum
    if (!reading || sequenceNumber === undefined) {
      // One that never had an account has paid nothing. One that has lost its account may have paid before.
      if (recorded === null) compared.push(address)
      continue
    }
    if (recorded === null) await adoptSequence(relay, channel, { sequenceNumber, ledger: reading.latestLedger })
    else if (recorded < sequenceNumber) await recordMove(relay, address, sequenceNumber)
    else if (recorded === sequenceNumber) await recordUnknownUse(relay, address, sequenceNumber)
    compared.push(address)
  }
  const areCompared = and(eq(relayChannels.token, token), inArray(relayChannels.address, compared))
  await db.update(relayChannels).set({ comparedAt: sql`clock_timestamp()` }).where(areCompared)
}

/**
 * Records the problem `moved` for the channel of an item whose transfer cannot be applied any more, if a transaction that
 * this database lacks has used the transfer's sequence number, as after a restore from a backup: it may have paid the item.
 * @throws LedgerError, including while the RPC lags: the item must not be paid again until the number is known to be
 *   free
 */
export async function suspectMove(relay: Relay, item: Item): Promise<void> {
  const { channel, signedXdr } = item
  if (channel === null || signedXdr === null) return
  const number = sequenceNumberOf(signedXdr, relay.network.passphrase)
  // Uses the ledger's time, which the first call reads: a clock that is ahead would keep the item from ever being paid.
  await relay.ledger.readLatest()
  const ledger = await relay.ledger.readClosedAfter(relay.ledger.now())
  const { response, isRecent } = await askUntilRecent(
    () => relay.sponsor.tracker.readAccount(channel),
    ({ account, latestLedger }) => latestLedger >= ledger || (account !== undefined && account.seqNum >= number),
  )
  if (!isRecent) throw new LedgerError('unavailable', 'the RPC lags behind the end of a transfer')
  if (!response.account || response.account.seqNum < number) return
  if (await isKnownUse(relay, { ...item, channel }, number)) return
  log('error', 'channel moved', { channel })
  await recordProblem(relay, channel, 'moved')
}

/**
 * Whether a recorded transfer other than the item's has used the number, or it was used before the channel was adopted. The
 * item's transfer was then signed with the number that a lagging node showed.
 */
async function isKnownUse(relay: Relay, { channel, innerHash }: HeldItem, number: bigint): Promise<boolean> {
  const { adoptedSequence = null } = (await findChannel(relay, channel)) ?? {}
  if (adoptedSequence !== null && number <= adoptedSequence) return true
  const db = await relay.database()
  const isItems = and(eq(envelopes.transfer, transfers.id), eq(envelopes.innerHash, innerHash ?? ''))
  const isOther = and(
    eq(transfers.account, channel),
    eq(transfers.sequenceNumber, number),
    inArray(transfers.status, [...MAY_HAVE_USED]),
    notExists(db.select().from(envelopes).where(isItems)),
  )
  return (await db.$count(transfers, isOther)) > 0
}
