import { and, eq, isNotNull, isNull } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { decodeEnvelope, encodeSigned } from '#lib/stellar/node/envelope.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { sponsorChannel } from '#lib/transfers/channel.ts'
import { HAS_LIVE_TRANSFER, IS_OPEN_LINE, type LineId, lockLine } from '#lib/transfers/line.ts'
import type { TokenEvent } from './channel-events.ts'
import { isLineError, LineError } from './line-error.ts'
import { isMarked, purposeOf } from './payment-mark.ts'
import type { Channel, Relay } from './relay.ts'

/**
 * Records a payment that the ledger applied and no row has, as the sponsor records any transaction that reached the ledger
 * without it, and ends the line or settles the payout that it was made for, in the same SQL transaction. Resolves to
 * that line. `transfer-open`: another transfer that may pay the same is not decided yet. `rpc-lags`: the RPC does not have
 * the transaction yet. Nothing is recorded then.
 */
export async function recordPayment(
  relay: Relay,
  channel: Channel,
  event: TokenEvent,
): Promise<{ line: LineId | undefined } | 'history-too-short' | 'rpc-lags' | 'transfer-open'> {
  const { sponsor } = relay
  const found = await lookUp(relay.network, event.hash)
  if (found.status === 'NOT_FOUND') return found.oldestLedger > event.ledger ? 'history-too-short' : 'rpc-lags'
  const signedXDR = encodeSigned(decodeEnvelope(found.envelopeXdr, relay.network.passphrase))
  for (;;) {
    const line = await findPaidLine(relay, channel, event)
    if (line?.isLive) return 'transfer-open'
    const payout = line ? undefined : await findPaidPayout(relay, channel, event)
    if (payout?.status === 'pending') return 'transfer-open'
    const payoutId = line?.payout ?? (payout?.status === 'paid' ? undefined : payout?.id)
    const claim = async (tx: Database) => {
      if (line && !(await lockLine(tx, line))) throw new LineError('line-gone', 'the line has ended in the meantime')
    }
    try {
      await sponsorChannel(
        { sponsor, tracker: sponsor.tracker },
        {
          channel: channel.address,
          quotaAccount: line?.quotaAccount ?? event.from,
          signedXDR,
          line: line && { ...line, sealedOpening: null, claim },
          ...(event.from !== channel.address && { delegated: payoutId ? { payoutId } : {} }),
        },
      )
      return { line }
    } catch (error) {
      if (!isLineError(error, 'line-gone')) throw error
    }
  }
}

/**
 * The line that a payment of a channel was made for, if it has not ended; none if it was lost with its job. For a payment from
 * an escrow it is a line that pays the same payout, in any run of any wallet.
 */
async function findPaidLine(relay: Relay, channel: Channel, payment: TokenEvent) {
  const { from, to } = payment
  const db = await relay.database()
  const { job, position, payout, recipient, quotaAccount } = relayLines
  const isOfRun = and(isNotNull(payout), eq(recipient, to))
  const candidates = await db
    .select({ job, position, payout, quotaAccount, isLive: HAS_LIVE_TRANSFER })
    .from(relayLines)
    .where(and(from === channel.address ? isNull(payout) : isOfRun, IS_OPEN_LINE))
  return candidates.find((each) => isMarked(channel, payment, purposeOf(each)))
}

/** The payout that a payment from an escrow was made for. */
async function findPaidPayout(relay: Relay, channel: Channel, payment: TokenEvent) {
  const { from, to } = payment
  const db = await relay.database()
  const organisation = await organisationOfWallet(db, from)
  if (from === channel.address || organisation === null) return undefined
  const candidates = await db
    .select({ id: payouts.id, status: payouts.status })
    .from(payouts)
    .where(and(eq(payouts.organisation, organisation), eq(payouts.address, to)))
  return candidates.find(({ id }) => isMarked(channel, payment, id))
}
