import { and, eq, isNotNull, isNull } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { relayLines } from '#drizzle/schema/relay.ts'
import type { Database } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { decodeEnvelope, encodeSigned } from '#lib/stellar/node/envelope.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { sponsorChannel } from '#lib/transfers/channel.ts'
import { HAS_LIVE_TRANSFER, IS_OPEN_LINE, lockLine } from '#lib/transfers/line.ts'
import { countFound } from '#lib/transfers/stop.ts'
import type { TokenEvent } from './channel-events.ts'
import { setChannel } from './channel-state.ts'
import { isLineError, LineError } from './line-error.ts'
import { findMarked, type MarkKeys, purposeOf, readMarkKeys } from './payment-mark.ts'
import type { Relay } from './relay.ts'

/**
 * Records a payment that the ledger applied and no row has, as the sponsor records any transaction that reached the ledger
 * without it, and ends the line or settles the payout that it was made for, in the same SQL transaction. A payment from an escrow
 * whose mark names no payout of this database needs an operator's word. `transfer-open`: another transfer that may pay the same is not
 * decided yet; `rpc-behind`: the RPC does not have the transaction yet. Nothing is recorded then.
 */
export async function recordPayment(
  relay: Relay,
  event: TokenEvent,
): Promise<'recorded' | 'history-gap' | 'rpc-behind' | 'transfer-open'> {
  const { sponsor, network, token } = relay
  const { channel, from, hash } = event
  const isDelegated = from !== channel
  const markKeys = await readMarkKeys(relay)
  const found = await lookUp(network, hash)
  if (found.status === 'NOT_FOUND') return found.oldestLedger > event.ledger ? 'history-gap' : 'rpc-behind'
  const signedXDR = encodeSigned(decodeEnvelope(found.envelopeXdr, network.passphrase))
  for (;;) {
    const line = await findPaidLine(relay, markKeys, event)
    if (line?.isLive) return 'transfer-open'
    const payout = await findPaidPayout(relay, markKeys, event)
    // A transfer that pays no line may hold it: that of a client.
    if (payout?.status === 'pending' && payout.error === null) return 'transfer-open'
    const payoutId = line?.payout ?? payout?.id
    const claim = async (tx: Database) => {
      if (line && !(await lockLine(tx, line))) throw new LineError('line-gone', 'the line has ended in the meantime')
    }
    const onFound = async (tx: Database) => {
      await countFound(tx, token)
      // It may have been for a payout that was instructed again after the backup.
      const isUnknown = isDelegated && !line && !payout
      if (isUnknown) await setChannel({ ...relay, database: async () => tx }, channel, { hasUnknownPurpose: true })
    }
    try {
      await sponsorChannel(
        { sponsor, tracker: sponsor.tracker },
        {
          channel,
          quotaAccount: line?.quotaAccount ?? from,
          signedXDR,
          line: line && { ...line, sealedOpening: null, claim },
          onFound,
          ...(isDelegated && { delegated: payoutId ? { payoutId } : {} }),
        },
      )
      return 'recorded'
    } catch (error) {
      if (!isLineError(error, 'line-gone')) throw error
    }
  }
}

/**
 * The line that a payment of a channel was made for, if it has not ended; none if it was lost with its job. For a payment from
 * an escrow it is a line that pays the same payout, in any run of any wallet.
 */
async function findPaidLine(relay: Relay, markKeys: MarkKeys, payment: TokenEvent) {
  const { channel, from, to } = payment
  const db = await relay.database()
  const { job, position, payout, recipient, quotaAccount } = relayLines
  const isOfKind = from === channel ? isNull(payout) : and(isNotNull(payout), eq(recipient, to))
  const candidates = await db
    .select({ job, position, payout, quotaAccount, isLive: HAS_LIVE_TRANSFER })
    .from(relayLines)
    .where(and(isOfKind, IS_OPEN_LINE))
  return await findMarked(markKeys, candidates, (line) => ({ payment, purpose: purposeOf(line) }))
}

/** The payout that a payment from an escrow was made for. If it is `pending` with an error, no open transfer pays it. */
async function findPaidPayout(relay: Relay, markKeys: MarkKeys, payment: TokenEvent) {
  const { channel, from, to } = payment
  const db = await relay.database()
  const organisation = await organisationOfWallet(db, from)
  if (from === channel || organisation === null) return undefined
  const { id, status, error } = payouts
  const candidates = await db
    .select({ id, status, error })
    .from(payouts)
    .where(and(eq(payouts.organisation, organisation), eq(payouts.address, to)))
  return await findMarked(markKeys, candidates, ({ id }) => ({ payment, purpose: id }))
}
