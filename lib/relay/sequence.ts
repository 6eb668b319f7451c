import { StrKey } from '@stellar/stellar-sdk'
import { and, eq, inArray, sql } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayChannels, relayJobs } from '#drizzle/schema/relay.ts'
import { foreignSince, requireOwnNetwork } from '#lib/archive/identity.ts'
import { readWindow } from '#lib/archive/source.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import type { ReadAccount } from '#lib/stellar/account.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import { askUntilRecent } from '#lib/stellar/view.ts'
import { findTransferOfHash } from '#lib/transfers/rows.ts'
import { KNOWN_NUMBER, lockForStop, stopPayments } from '#lib/transfers/stop.ts'
import { readConfidentialAccount } from '#lib/wallet/account.ts'
import { readTokenEvents } from './channel-events.ts'
import { isChannel, isInUse, setChannel } from './channel-state.ts'
import { LineError } from './line-error.ts'
import type { RelayStore } from './relay.ts'

/** The source account's sequence number that a signed transaction (base64 XDR) uses. */
export function sequenceNumberOf(signedXdr: string, passphrase: string): bigint {
  return decodeEnvelope(signedXdr, passphrase).envelope.tx.seqNum
}

/**
 * Requires that a channel may sign with this sequence number, in the SQL transaction that records the transfer. The number
 * before it is the ledger's: if that is higher than the known one, transactions were applied that this database does not have,
 * as after a restore from a backup.
 * @param given.isLine whether it pays a line: other calls may be signed while the channel is paused or not adopted yet
 * @throws LineError `channel-moved`, `channel-paused`, `not-adopted`
 */
export async function requireKnownNumber(
  tx: Database,
  token: string,
  { address, number, isLine }: { address: string; number: bigint; isLine: boolean },
): Promise<void> {
  const { paused, retired } = relayChannels
  const columns = { isOff: sql<boolean>`${paused} or ${retired}`, known: KNOWN_NUMBER }
  const [channel] = await tx.select(columns).from(relayChannels).where(isChannel(token, address))
  if (!channel) throw new Error('a channel that was never announced signs')
  if (isLine && channel.isOff) throw new LineError('channel-paused', 'an operator has paused or retired the channel')
  if (isLine && channel.known === null)
    throw new LineError('not-adopted', 'the channel was not compared with the ledger yet')
  if ((channel.known ?? number) < number - 1n) {
    throw new LineError('channel-moved', 'the ledger has transactions of the channel that this database does not have')
  }
}

/**
 * Stops all payments because a channel has moved: the ledger shows a number that this database cannot explain. A stop begins again
 * if the channel was reconciled for it: what has moved it since may have paid more.
 * @param seen that number, which the rows may explain by now; undefined if a row was lost
 */
export async function noteMove({ database, token, now }: RelayStore, address: string, seen?: bigint): Promise<void> {
  const columns = { again: relayChannels.reconciledStop, known: KNOWN_NUMBER }
  await transact(await database(), async (tx) => {
    await lockForStop(tx)
    const [channel] = await tx.select(columns).from(relayChannels).where(isChannel(token, address))
    if (seen !== undefined && (channel?.known ?? -1n) >= seen) return
    await stopPayments(tx, { token, channel: address, now: now(), again: channel?.again ?? undefined })
  })
}

/** Adopts the number of a channel that has none, as of `ledger`, if all its payments are recorded. Otherwise payments stop. */
async function adoptSequence(
  context: Comparing,
  address: string,
  sequenceNumber: bigint,
  ledger: number,
): Promise<void> {
  const isUnused = (sequenceNumber & COUNT_OF_TRANSACTIONS) <= 1n
  const isKnown = isUnused || (await arePaymentsKnown(context, address, ledger))
  if (!isKnown) return await noteMove(context, address)
  await setChannel(context, address, { adoptedSequence: sequenceNumber }, sql`${KNOWN_NUMBER} is null`)
}

/** An account's first sequence number has its ledger in the upper half: the lower half counts its transactions. */
const COUNT_OF_TRANSACTIONS = 0xffff_ffffn

/** Whether the database records each payment of a channel up to `ledger`, or has nothing that could have been paid. */
async function arePaymentsKnown(context: Comparing, address: string, ledger: number): Promise<boolean> {
  const db = await context.database()
  const found = await Promise.all([payouts, relayJobs].map((table) => db.select({ id: table.id }).from(table).limit(1)))
  if (found.flat().length === 0) return true
  const { transfers: payments, latestLedger, isWhole } = await readTokenEvents(context, address, undefined)
  if (latestLedger < ledger) throw new LedgerError('unavailable', 'the RPC’s events are behind its ledger')
  // A channel that is not registered yet has no events.
  if (!isWhole) return !(await readConfidentialAccount(context.network.server, context.token, address))
  for (const { hash } of payments) if (!(await findTransferOfHash(db, hash))) return false
  return true
}

/** The channels in use, each with the highest sequence number that is known to be used there; null before it is adopted. */
function findKnownNumbers(db: Database, token: string) {
  const { address } = relayChannels
  return db.select({ address, known: KNOWN_NUMBER }).from(relayChannels).where(isInUse(token)).orderBy(address)
}

/** What a comparison with the ledger needs. No key: every process of the service compares. */
interface Comparing extends RelayStore {
  network: Network
  readAccount: ReadAccount
}

/**
 * Compares the sequence numbers of all channels with the ledger's: a higher one there means that this database lacks
 * transactions, as after a restore from a backup, and payments stop. A host leases no line before it has done so with `atLeast`,
 * because another host's channel may have paid that line. Resolves to the number of channels that were compared.
 * @param atLeast a ledger that the responses must include
 * @throws LedgerError
 */
export async function compareSequences(context: Comparing, atLeast = 0): Promise<number> {
  const { token, database, readAccount } = context
  const db = await database()
  // One malformed row must not keep every relay from comparing the others.
  const isAccount = (address: string) => StrKey.isValidEd25519PublicKey(address)
  const addresses = (await findKnownNumbers(db, token)).map(({ address }) => address).filter(isAccount)
  const { response: readings, isRecent } = await askUntilRecent(
    () => Promise.all(addresses.map(readAccount)),
    (responses) => responses.every(({ latestLedger }) => latestLedger >= atLeast),
  )
  if (!isRecent) throw new LedgerError('unavailable', 'the RPC lags behind the start of the relay')
  const onLedger = new Map(addresses.map((address, index) => [address, readings[index]]))
  const compared: string[] = []
  const failures: unknown[] = []
  // Read after the ledger: a transfer is recorded before it is sent.
  for (const { address, known } of await findKnownNumbers(db, token)) {
    const reading = onLedger.get(address)
    const ledgerSequence = reading?.account?.seqNum
    if (!reading || ledgerSequence === undefined) {
      // One that never had an account has paid nothing. One that has lost its account may have paid before.
      if (known === null) compared.push(address)
      continue
    }
    const isChanged = sql`${relayChannels.ledgerSequence} is distinct from ${ledgerSequence}`
    await setChannel(context, address, { ledgerSequence }, isChanged)
    const compare = async () => {
      if (known === null) await adoptSequence(context, address, ledgerSequence, reading.latestLedger)
      else if (known < ledgerSequence) await noteMove(context, address, ledgerSequence)
      compared.push(address)
    }
    // One channel whose payments cannot be read must not keep the others from being compared.
    await compare().catch((error: unknown) => failures.push(error))
  }
  const areCompared = and(eq(relayChannels.token, token), inArray(relayChannels.address, compared))
  await db.update(relayChannels).set({ comparedAt: sql`clock_timestamp()` }).where(areCompared)
  if (failures.length > 0) throw failures[0]
  return compared.length
}

/** Every process that keeps running compares the channels more often than this (s). */
export const COMPARED_SECONDS = 120

/** A process looks at most once in this time (ms). */
const LOOK_AGAIN_MS = 30_000

/** Compares the channels if no process has done so lately, for a client's payment where no relay and no maintenance runs. */
export function openComparison(context: Comparing): () => Promise<void> {
  let lookedAt = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined

  async function look(): Promise<void> {
    const db = await context.database()
    // It may have been a stray node.
    if (await foreignSince(db, context.token)) await requireOwnNetwork(db, context, await readWindow(context.network))
    const isLate = sql`coalesce(${relayChannels.comparedAt} < clock_timestamp() - make_interval(secs => ${COMPARED_SECONDS}), true)`
    if ((await db.$count(relayChannels, and(isInUse(context.token), isLate))) > 0) await compareSequences(context)
    lookedAt = performance.now()
  }

  return async () => {
    if (performance.now() - lookedAt < LOOK_AGAIN_MS) return
    looking ??= look().finally(() => {
      looking = undefined
    })
    await looking
  }
}
