import { StrKey } from '@stellar/stellar-sdk'
import { and, eq, inArray, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { type ChannelProblem, relayChannels, relayJobs } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import { askUntilRecent } from '#lib/transfers/recency.ts'
import { findTransferOfHash, MAY_HAVE_USED_NUMBER } from '#lib/transfers/rows.ts'
import { readConfidentialAccount } from '#lib/wallet/account.ts'
import { readTokenEvents } from './channel-events.ts'
import { type ChannelStore, findChannels, isChannel } from './channel-state.ts'
import { LineError } from './line-error.ts'
import type { Relay } from './relay.ts'

/** The source account's sequence number that a signed transaction (base64 XDR) uses. */
export function sequenceNumberOf(signedXdr: string, passphrase: string): bigint {
  return decodeEnvelope(signedXdr, passphrase).envelope.tx.seqNum
}

/**
 * The highest sequence number of a channel that is known to be used, or may still be: the one at which it was adopted, or that of
 * a transfer. Null before it is adopted.
 */
const KNOWN_NUMBER = sql`greatest(${relayChannels.adoptedSequence}, (select max(${transfers.sequenceNumber})
  from ${transfers} where ${transfers.account} = ${relayChannels.address} and ${MAY_HAVE_USED_NUMBER}))`.mapWith(
  relayChannels.adoptedSequence,
)

/**
 * Requires that a channel may sign with this sequence number, in the SQL transaction that records the transfer. The number
 * before it is the ledger's: if that is higher than the known one, transactions were applied that this database does not have,
 * as after a restore from a backup.
 * @param given.isLine whether it pays a line: other calls may be signed while the channel is paused or not adopted yet
 * @throws LineError `channel-unfit`, with the problem `moved`, `channel-paused` and `not-adopted`
 */
export async function requireKnownNumber(
  tx: Database,
  token: string,
  { address, number, isLine }: { address: string; number: bigint; isLine: boolean },
): Promise<void> {
  const [channel] = await tx
    .select({ problem: relayChannels.problem, paused: relayChannels.paused, known: KNOWN_NUMBER })
    .from(relayChannels)
    .where(isChannel(token, address))
  if (!channel) throw new Error('a channel that was never announced signs')
  if (channel.paused && isLine) throw new LineError('channel-paused', 'an operator has paused the channel')
  const isUnknown = channel.known === null && isLine
  if (channel.problem !== 'moved' && !isUnknown && (channel.known ?? number) >= number - 1n) return
  if (isUnknown) throw new LineError('not-adopted', 'the channel was not compared with the ledger yet')
  throw new LineError('channel-unfit', `channel ${address} has moved: see npm run relay -- --help`, {
    problem: 'moved',
  })
}

/**
 * Records the problem `moved` if the ledger's sequence number is higher than the known one. One statement compares
 * and records: an operator may release the channel at the same time. A channel that has moved already moves again if
 * its number has risen: it was released and has paid after the backup that was restored, so it may have paid items
 * queued in the meantime.
 */
async function recordMove(store: ChannelStore, address: string, sequenceNumber: bigint): Promise<void> {
  const { problem, movedSequence } = relayChannels
  const known = sql`CASE WHEN ${problem} = 'moved' THEN coalesce(${movedSequence}, ${KNOWN_NUMBER}) ELSE ${KNOWN_NUMBER} END`
  await (await store.database())
    .update(relayChannels)
    .set({ problem: 'moved', movedAt: sql`clock_timestamp()`, movedSequence: sequenceNumber })
    .where(and(isChannel(store.token, address), sql`${known} < ${sequenceNumber}`))
}

/**
 * Adopts the ledger's sequence number for a channel that has none, if every payment that it has made is recorded. Otherwise
 * the channel has moved: it may be newer than the backup from which this database was restored.
 * @throws LedgerError
 */
async function adoptSequence(
  relay: Relay,
  { address, problem }: KnownNumber,
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
        ? { adoptedSequence: sequenceNumber }
        : { problem: 'moved', movedAt: sql`clock_timestamp()`, movedSequence: sequenceNumber },
    )
    .where(and(isChannel(relay.token, address), sql`${KNOWN_NUMBER} is null`))
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
  const [job] = await db.select({ id: relayJobs.id }).from(relayJobs).limit(1)
  if (!payout && !job) return true
  const { transfers: payments, latestLedger, isWhole } = await readTokenEvents(relay, address, undefined)
  if (latestLedger < ledger) throw new LedgerError('unavailable', 'the RPC’s events are behind its ledger')
  // A channel that is not registered yet has no events.
  if (!isWhole) return !(await readConfidentialAccount(relay.network.server, relay.token, address))
  for (const { hash } of payments) if (!(await findTransferOfHash(db, hash))) return false
  return true
}

/** A channel, and the highest sequence number that is known to be used there; null before it is adopted. */
interface KnownNumber {
  address: string
  problem: ChannelProblem | null
  known: bigint | null
}

const findKnownNumbers = (db: Database, token: string): Promise<KnownNumber[]> =>
  db
    .select({ address: relayChannels.address, problem: relayChannels.problem, known: KNOWN_NUMBER })
    .from(relayChannels)
    .where(eq(relayChannels.token, token))
    .orderBy(relayChannels.address)

/** One malformed row must not keep every relay from comparing the others. */
const isAccount = (address: string): boolean => StrKey.isValidEd25519PublicKey(address)

/**
 * Compares the sequence numbers of all relays' channels with the ledger's: a higher one there means that this database
 * lacks transactions, as after a restore from a backup. A relay leases no line before it has done so with `since`, because
 * another relay's channel may have paid that line.
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
  // Read after the ledger: a transfer is recorded before it is sent.
  for (const channel of await findKnownNumbers(db, token)) {
    const { address, known } = channel
    const reading = onLedger.get(address)
    const sequenceNumber = reading?.account?.seqNum
    if (!reading || sequenceNumber === undefined) {
      // One that never had an account has paid nothing. One that has lost its account may have paid before.
      if (known === null) compared.push(address)
      continue
    }
    if (known === null) await adoptSequence(relay, channel, { sequenceNumber, ledger: reading.latestLedger })
    else if (known < sequenceNumber) await recordMove(relay, address, sequenceNumber)
    compared.push(address)
  }
  const areCompared = and(eq(relayChannels.token, token), inArray(relayChannels.address, compared))
  await db.update(relayChannels).set({ comparedAt: sql`clock_timestamp()` }).where(areCompared)
}
