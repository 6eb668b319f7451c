import { and, desc, eq, gt, inArray, isNotNull, ne, or, sql } from 'drizzle-orm'
import { type ReconcileProblem, relayChannels } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { describeFailure, log } from '#lib/observability/log.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { askUntilRecent, type LedgerTime } from '#lib/stellar/view.ts'
import { findOpenTransfer, findTransferOfHash } from '#lib/transfers/rows.ts'
import { readStop, type Stop } from '#lib/transfers/stop.ts'
import { readArchivedPayments, readTokenEvents } from './channel-events.ts'
import { type ChannelRecord, isChannel } from './channel-state.ts'
import { isRegistered } from './check.ts'
import { recordPayment } from './lost-payment.ts'
import { readMarkKeys } from './mark-keys.ts'
import type { Relay } from './relay.ts'
import { resumeIfReconciled } from './resume.ts'

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
  const markKeys = await readMarkKeys(relay)
  const isOpen = or(sql`${relayChannels.reconciledStop} is null`, ne(relayChannels.reconciledStop, stop.since))
  const open = await db
    .select()
    .from(relayChannels)
    .where(
      and(
        eq(relayChannels.token, token),
        eq(relayChannels.retired, false),
        inArray(relayChannels.address, [...markKeys.keys()]),
        isOpen,
      ),
    )
    .orderBy(relayChannels.address)
  for (const channel of open) {
    // One channel that cannot be read must not keep the others from being read.
    const problem = await reconcileChannel(relay, channel, stop).catch(
      (error: unknown): ReconcileProblem | 'done' | null => {
        const isLedgers = error instanceof LedgerError && error.code === 'unavailable'
        log(isLedgers ? 'info' : 'error', 'reconcile', { channel: channel.address, failure: describeFailure(error) })
        return isLedgers ? 'rpc-behind' : 'failed'
      },
    )
    if (problem === channel.reconcileProblem || problem === 'done') continue
    if (problem) log('info', 'reconcile', { channel: channel.address, problem })
    await db.update(relayChannels).set({ reconcileProblem: problem }).where(isChannel(token, channel.address))
  }
  await resumeIfReconciled(relay)
}

/**
 * Finds the payments of a channel that have no row. It is reconciled once history is whole up to a reading of its account that was
 * made after every payment that was signed before the stop has been applied or has expired. Resolves to what is in the way; null if
 * it only has to wait.
 */
async function reconcileChannel(
  relay: Relay,
  { address }: ChannelRecord,
  { since }: Stop,
): Promise<ReconcileProblem | 'done' | null> {
  const { sponsor, token, times } = relay
  const { tracker } = sponsor
  const db = await relay.database()
  const open = await findOpenTransfer(db, address)
  if (open) {
    void tracker.track([open.id], { waitMs: 0, lookUp: 'untracked' })
    return 'transfer-open'
  }
  const over = drainedAt(since, times)
  const isOver = relay.ledger.now() > over
  const ledger = isOver ? await relay.ledger.readClosedAfter(over) : await relay.ledger.readLatest()
  // The account first, the events second: a transaction in between shows as a move afterwards.
  const { response, isRecent } = await askUntilRecent(
    () => tracker.readAccount(address),
    (reading) => reading.latestLedger >= ledger,
  )
  if (!isRecent) return 'rpc-behind'
  const events = await readHistory(relay, address, response.latestLedger)
  if (!events.isWhole) return 'history-gap'
  if (events.latestLedger < response.latestLedger) return 'rpc-behind'
  for (const event of events.transfers) {
    if (await findTransferOfHash(db, event.hash)) continue
    const recorded = await recordPayment(relay, event)
    if (recorded !== 'recorded') return recorded
  }
  if (!isOver) return null
  const { hasUnknownPurpose } = relayChannels
  // The payment has a row from now on: only an operator can tell whether it was instructed again.
  const problem = sql`case when ${hasUnknownPurpose} then 'purpose-unknown' end`
  await db
    .update(relayChannels)
    .set({
      reconciledStop: since,
      reconcileProblem: problem,
      adoptedSequence: response.account?.seqNum ?? null,
      readAt: null,
    })
    .where(isChannel(token, address))
  return 'done'
}

/** When nothing that was signed before a stop can be applied any more: `drain` includes the difference of the clocks. */
const drainedAt = (since: Date, { drain }: Relay['times']) => (since.getTime() + drain * 1000) as LedgerTime

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
