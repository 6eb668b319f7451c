import { and, desc, eq, gt, inArray, isNotNull, lt, or, sql } from 'drizzle-orm'
import { type ReconcileProblem, relayChannels } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { databaseFailure } from '#lib/db/errors.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { askUntilRecent, type LedgerTime } from '#lib/stellar/view.ts'
import { findOpenTransfer, findTransferOfHash } from '#lib/transfers/rows.ts'
import { lockStop, readStop, type Stop } from '#lib/transfers/stop.ts'
import { readArchivedPayments, readTokenEvents } from './channel-events.ts'
import { isInUse, setChannel } from './channel-state.ts'
import { isRegistered } from './check.ts'
import { recordPayment } from './past-payments.ts'
import { readMarkKeys } from './payment-mark.ts'
import type { Relay, RelayStore } from './relay.ts'
import { isUnreconciled, RECONCILE_PATIENCE_MS, resumeIfReconciled } from './resume.ts'

/**
 * During a stop, brings the rows of every channel of the relays' key up to the ledger: records the payments that have no row,
 * settles what each was made for, and notes for each channel why that is not possible yet. Payments go on by themselves once every
 * channel is reconciled. Any host can do it, and a repetition changes nothing.
 */
export async function reconcile(relay: Relay): Promise<void> {
  const { database, token } = relay
  const db = await database()
  const stop = await readStop(db, token)
  if (!stop) return
  const own = inArray(relayChannels.address, [...(await readMarkKeys(relay)).keys()])
  const isOpen = and(isInUse(token), own, isUnreconciled(stop))
  const open = await db.select().from(relayChannels).where(isOpen).orderBy(relayChannels.address)
  for (const { address, reconcileProblem } of open) {
    // One channel that cannot be read must not keep the others from being read.
    const problem = await reconcileChannel(relay, address, stop).catch((error: unknown) => {
      const isLedgers = error instanceof LedgerError && error.code === 'unavailable'
      log(isLedgers ? 'info' : 'error', 'reconcile', { channel: address, failure: describeFailure(error) })
      // A database that does not respond for a while says nothing about the channel.
      const cause = databaseFailure(error)
      const isYoung = relay.now().getTime() - stop.since.getTime() < RECONCILE_PATIENCE_MS
      if (isYoung && cause instanceof Refusal && cause.code === 'unavailable') return undefined
      return isLedgers ? 'rpc-behind' : 'failed'
    })
    if (problem === reconcileProblem || problem === undefined) continue
    if (problem) log('info', 'reconcile', { channel: address, problem })
    // Not over the result of another host that has reconciled it in the meantime.
    const columns = { reconcileProblem: problem }
    await duringStop(relay, stop, (store) => setChannel(store, address, columns, isUnreconciled(stop)))
  }
  await resumeIfReconciled(relay)
}

/**
 * Finds the payments of a channel that have no row. It is reconciled once history is whole up to a reading of its account from after
 * all that was signed before the stop was applied or has expired. Resolves to the problem that
 * prevents it, to null if only time has to pass, or to undefined once it is reconciled.
 */
async function reconcileChannel(
  relay: Relay,
  address: string,
  stop: Stop,
): Promise<ReconcileProblem | null | undefined> {
  const { tracker } = relay.sponsor
  const db = await relay.database()
  const open = await findOpenTransfer(db, address)
  if (open) {
    void tracker.track([open.id], { waitMs: 0, lookUp: 'untracked' })
    return 'transfer-open'
  }
  // When nothing that was signed before can be applied any more: `drain` includes the difference of the clocks.
  const drainedAt = (stop.since.getTime() + relay.times.drain * 1000) as LedgerTime
  const isOver = relay.ledger.now() > drainedAt
  const ledger = isOver ? await relay.ledger.readClosedAfter(drainedAt) : await relay.ledger.readLatest()
  // The account first, the events second: a transaction in between shows as a move afterwards.
  const { response, isRecent } = await askUntilRecent(
    () => tracker.readAccount(address),
    (reading) => reading.latestLedger >= ledger,
  )
  if (!isRecent) return 'rpc-behind'
  const events = await readHistory(relay, address, response.latestLedger)
  if (!events.isWhole) return 'history-gap'
  if (events.latestLedger < response.latestLedger) return 'rpc-behind'
  const recorded = new Set<string>()
  for (const event of events.transfers) {
    const found = (await findTransferOfHash(db, event.hash))?.transfer ?? (await recordPayment(relay, event))
    if (typeof found === 'string') return found
    recorded.add(found.id)
  }
  if (!isOver) return null
  const adoptedSequence = response.account?.seqNum ?? null
  const reconciled = { reconciledStop: stop.since, reconcileProblem: null, adoptedSequence, readAt: null }
  // Another host may have read more of it in the meantime.
  const isNews = or(
    isUnreconciled(stop),
    adoptedSequence === null ? undefined : lt(relayChannels.adoptedSequence, adoptedSequence),
  )
  await duringStop(relay, stop, async (store, tx) => {
    // A database that was replaced since may lack a row again.
    const present = await tx.$count(transfers, sql`${transfers.id} = any(${`{${[...recorded].join(',')}}`}::uuid[])`)
    if (present === recorded.size) await setChannel(store, address, reconciled, isNews)
    else log('error', 'reconcile', { channel: address, problem: 'the database has lost a payment again' })
  })
}

/** Does `work` in one SQL transaction, during which the stop stays on. Does nothing if it has ended, or has begun again. */
async function duringStop(
  relay: Relay,
  stop: Stop,
  work: (store: RelayStore, tx: Database) => Promise<void>,
): Promise<void> {
  await transact(await relay.database(), async (tx) => {
    if (await lockStop(tx, relay.token, stop)) await work({ ...relay, database: async () => tx }, tx)
  })
}

/** The payments of a channel since its last recorded one, from the RPC, or else from the first archive that has them all. */
async function readHistory(relay: Relay, address: string, toLedger: number) {
  const sinceLedger = await findLastRecorded(relay, address)
  const events = await readTokenEvents(relay, address, sinceLedger)
  if (events.isWhole) return events
  // A channel that was never registered has paid nothing.
  if (sinceLedger === undefined && !(await isRegistered(relay, address))) return { ...events, isWhole: true }
  let late: LedgerError | undefined
  for (const archive of (await relay.deployment()).archives ?? []) {
    const archived = await readArchivedPayments(archive, address, { sinceLedger, toLedger }).catch((error: unknown) => {
      log('info', 'reconcile', { channel: address, archive: archive.name, failure: describeFailure(error) })
      if (error instanceof LedgerError && error.code === 'unavailable') late ??= error
      return undefined
    })
    if (archived?.isWhole) return archived
  }
  // An archive that is catching up may have them all soon: that is no gap yet.
  if (late) throw late
  return events
}

/** The ledger of the channel's last payment that was recorded before it was sent: earlier ones all have rows. */
async function findLastRecorded(relay: Relay, address: string): Promise<number | undefined> {
  // A payment that was found on the ledger has a bid of 0: earlier ones may still be missing.
  const wasSponsored = and(isNotNull(transfers.ledger), gt(transfers.bid, 0n))
  const [row] = await (await relay.database())
    .select({ ledger: transfers.ledger })
    .from(transfers)
    .where(and(eq(transfers.account, address), wasSponsored))
    .orderBy(desc(transfers.sequenceNumber), desc(transfers.ledger))
    .limit(1)
  return row?.ledger ?? undefined
}
