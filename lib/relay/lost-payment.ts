import { and, eq, isNotNull, isNull } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayChannels, relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { decodeEnvelope, encodeSigned } from '#lib/stellar/node/envelope.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { HAS_LIVE_TRANSFER, IS_OPEN_LINE, lockLine } from '#lib/transfers/line.ts'
import { countFound } from '#lib/transfers/stop.ts'
import { sponsorChannel } from '#lib/transfers/submit.ts'
import type { TokenEvent } from './channel-events.ts'
import { isChannel } from './channel-state.ts'
import { isLineError, LineError } from './line-error.ts'
import { readMarkKeys } from './mark-keys.ts'
import { findMarked, purposeOf } from './payment-mark.ts'
import type { Relay } from './relay.ts'

/**
 * Records a payment that the ledger applied and no row has, as the sponsor records any transaction that reached the ledger
 * without it, and ends the line or settles the payout that it was made for, in the same SQL transaction. A
 * payment from an escrow whose mark names no payout of this database needs an operator's word. `transfer-open`: another transfer
 * that may pay the same is not decided yet; `rpc-behind`: the RPC does not have the transaction yet. Nothing is recorded then.
 */
export async function recordPayment(
  relay: Relay,
  event: TokenEvent,
): Promise<'recorded' | 'history-gap' | 'rpc-behind' | 'transfer-open'> {
  const { sponsor } = relay
  const { channel } = event
  const markKey = (await readMarkKeys(relay)).get(channel)
  const isDelegated = event.from !== channel
  const found = await lookUp(relay.network, event.hash)
  if (found.status === 'NOT_FOUND') return found.oldestLedger > event.ledger ? 'history-gap' : 'rpc-behind'
  const signedXDR = encodeSigned(decodeEnvelope(found.envelopeXdr, relay.network.passphrase))
  for (;;) {
    const line = markKey && (await findPaidLine(relay, markKey, event))
    if (line?.isLive) return 'transfer-open'
    const payout = markKey && (await findPaidPayout(relay, markKey, event))
    // A transfer that pays no line may hold it: that of a client.
    if (payout?.status === 'pending' && payout.error === null) return 'transfer-open'
    const payoutId = line?.payout ?? payout?.id
    const claim = async (tx: Database) => {
      if (line && !(await lockLine(tx, line))) throw new LineError('line-gone', 'the line has ended in the meantime')
    }
    try {
      await sponsorChannel(
        { sponsor, tracker: sponsor.tracker },
        {
          channel,
          quotaAccount: line?.quotaAccount ?? event.from,
          signedXDR,
          line: line && { ...line, sealedOpening: null, claim },
          onFound: async (tx) => {
            await countFound(tx, relay.token)
            const isUnknown = isDelegated && !line && !payout
            if (isUnknown) await noteUnknownPurpose(tx, relay.token, channel)
          },
          ...(isDelegated && { delegated: payoutId ? { payoutId } : {} }),
        },
      )
      return 'recorded'
    } catch (error) {
      if (!isLineError(error, 'line-gone')) throw error
    }
  }
}

/** Payments from an escrow whose purpose is unknown may have been for a payout that was instructed again after the backup. */
async function noteUnknownPurpose(tx: Database, token: string, channel: string): Promise<void> {
  await tx.update(relayChannels).set({ hasUnknownPurpose: true }).where(isChannel(token, channel))
}

/**
 * The line that a payment of a channel was made for, if it has not ended; none if it was lost with its job. For a payment from
 * an escrow it is a line that pays the same payout, in any run of any wallet.
 */
async function findPaidLine(relay: Relay, markKey: Uint8Array, payment: TokenEvent) {
  const { channel, from, to } = payment
  const db = await relay.database()
  const { job, position, payout, recipient, quotaAccount } = relayLines
  const isOfRun = and(isNotNull(payout), eq(recipient, to))
  const candidates = await db
    .select({ job, position, payout, quotaAccount, isLive: HAS_LIVE_TRANSFER })
    .from(relayLines)
    .where(and(from === channel ? isNull(payout) : isOfRun, IS_OPEN_LINE))
  return await findMarked(candidates, (line) => ({ markKey, payment, purpose: purposeOf(line) }))
}

/** The payout that a payment from an escrow was made for. If it is `pending` with an error, no open transfer pays it. */
async function findPaidPayout(relay: Relay, markKey: Uint8Array, payment: TokenEvent) {
  const { channel, from, to } = payment
  const db = await relay.database()
  const organisation = await organisationOfWallet(db, from)
  if (from === channel || organisation === null) return undefined
  const candidates = await db
    .select({ id: payouts.id, status: payouts.status, error: payouts.error })
    .from(payouts)
    .where(and(eq(payouts.organisation, organisation), eq(payouts.address, to)))
  return await findMarked(candidates, ({ id }) => ({ markKey, payment, purpose: id }))
}
