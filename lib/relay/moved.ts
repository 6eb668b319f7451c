import { StrKey } from '@stellar/stellar-sdk'
import { and, desc, eq, gt, isNotNull } from 'drizzle-orm'
import { type ReleaseRefusal, relayChannels } from '#drizzle/schema/relay.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { transact } from '#lib/db/connection.ts'
import { askUntilRecent } from '#lib/transfers/recency.ts'
import { findOpenTransfer, findTransferOfHash } from '#lib/transfers/rows.ts'
import { readTokenEvents } from './channel-events.ts'
import { findChannel, isChannel } from './channel-state.ts'
import { recordPayment } from './lost-payment.ts'
import type { Channel, Relay } from './relay.ts'

export interface Released {
  /** transfers of the channel that had no row */
  recorded: number
  /** lines that those transfers had paid */
  settled: number
}

const NO_RELEASE_REQUEST = {
  releaseRequestedAt: null,
  releaseRequestedBy: null,
  releaseNote: null,
  releaseTriedAt: null,
  releaseRefusal: null,
}

/**
 * Releases a channel with the problem `moved`: adopts the ledger's sequence number and audits that. Unless `isUnverified`, it
 * first reads the channel's transfers since the last one that the sponsor paid for, records those that have no row, and
 * settles the line or payout that each was made for: only a host with the channel's seed can tell. May be repeated after a
 * failure.
 * @throws LedgerError, SponsorRefusal
 */
export async function releaseMoved(
  relay: Relay,
  {
    address,
    isUnverified,
    operator = 'command line',
    note,
  }: { address: string; isUnverified: boolean; operator?: string; note?: string },
): Promise<Released | ReleaseRefusal> {
  const db = await relay.database()
  const channel = await findChannel(relay, address)
  const own = relay.channels.find((each) => each.address === address)
  if (!channel || !(own || isUnverified)) return 'unknown-channel'
  if (channel.problem !== 'moved') return 'not-moved'
  if (await findOpenTransfer(db, address)) return 'transfer-open'
  // The account first, the events second: a transaction in between leaves the channel moved.
  const movedLedger = await relay.ledger.readClosedAfter(channel.movedAt?.getTime() ?? 0)
  const { response, isRecent } = await askUntilRecent(
    () => relay.sponsor.tracker.readAccount(address),
    (reading) => reading.latestLedger >= movedLedger,
  )
  if (!isRecent) return 'rpc-lags'
  const { account, latestLedger } = response
  const counts = own && !isUnverified ? await recordMissing(relay, own, latestLedger) : { recorded: 0, settled: 0 }
  if (typeof counts === 'string') return counts
  return await transact(db, async (tx) => {
    const released = await tx
      .update(relayChannels)
      .set({
        problem: 'account',
        movedAt: null,
        movedSequence: null,
        adoptedSequence: account?.seqNum ?? null,
        readAt: null,
        ...NO_RELEASE_REQUEST,
      })
      .where(and(isChannel(relay.token, address), eq(relayChannels.problem, 'moved')))
      .returning({ address: relayChannels.address })
    if (released.length === 0) return 'not-moved'
    await recordAudit(tx, relay.now(), {
      organisation: undefined,
      actor: { kind: 'operator', sub: operator },
      action: 'channel.released',
      subject: address,
      detail: { ...counts, verified: !isUnverified, ...(note && { note }) },
    })
    return counts
  })
}

async function recordMissing(relay: Relay, channel: Channel, untilLedger: number): Promise<Released | ReleaseRefusal> {
  const { address } = channel
  const db = await relay.database()
  // A payment that was lost and then found on the ledger has a bid of 0: earlier ones may still be missing.
  const wasSponsored = and(isNotNull(transfers.ledger), gt(transfers.bid, 0n))
  const [row] = await db
    .select({ ledger: transfers.ledger })
    .from(transfers)
    .where(and(eq(transfers.account, address), wasSponsored))
    .orderBy(desc(transfers.sequenceNumber), desc(transfers.ledger))
    .limit(1)
  const events = await readTokenEvents(relay, address, row?.ledger ?? undefined)
  if (!events.isWhole) return 'history-too-short'
  if (events.latestLedger < untilLedger) return 'rpc-lags'
  const counts = { recorded: 0, settled: 0 }
  for (const event of events.transfers) {
    if (await findTransferOfHash(db, event.hash)) continue
    const recorded = await recordPayment(relay, channel, event)
    if (typeof recorded === 'string') return recorded
    counts.recorded += 1
    if (recorded.line) counts.settled += 1
  }
  return counts
}

export const isChannelAddress = (text: string | undefined): text is string =>
  text !== undefined && StrKey.isValidEd25519PublicKey(text)
