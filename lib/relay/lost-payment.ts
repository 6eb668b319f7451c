import { and, eq, inArray, isNotNull, isNull } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { batchItems } from '#drizzle/schema/relay.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { decodeEnvelope, encodeSigned } from '#lib/stellar/node/envelope.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import { sponsorChannel } from '#lib/transfers/channel.ts'
import type { TokenEvent } from './channel-events.ts'
import { endWithin, requeue } from './item.ts'
import { ItemError, isItemError } from './item-error.ts'
import { findItem, type Item, OPEN_ITEM } from './item-row.ts'
import { isMarked, purposeOf } from './payment-mark.ts'
import type { Channel, Relay } from './relay.ts'

/**
 * Records a payment that the ledger applied and no row has, as the sponsor records any transaction that reached the ledger
 * without it, and ends the item or settles the payout that it was made for, in the same SQL transaction. Resolves to
 * that item. `transfer-open`: another transfer that may pay the same is not decided yet. `rpc-lags`: the RPC does not have
 * the transaction yet. Nothing is recorded then.
 */
export async function recordPayment(
  relay: Relay,
  channel: Channel,
  event: TokenEvent,
): Promise<{ item: Item | undefined } | 'history-too-short' | 'rpc-lags' | 'transfer-open'> {
  const { sponsor } = relay
  const context = { sponsor, tracker: sponsor.tracker, waitMs: 0 }
  const found = await lookUp(relay.network, event.hash)
  if (found.status === 'NOT_FOUND') return found.oldestLedger > event.ledger ? 'history-too-short' : 'rpc-lags'
  const signed = decodeEnvelope(found.envelopeXdr, relay.network.passphrase)
  const signedXDR = encodeSigned(signed)
  const ending = { status: 'paid', hash: event.hash, innerHash: signed.hashHex } as const
  for (;;) {
    const item = await findPaidItem(relay, channel, event)
    if (item?.status === 'signed') return 'transfer-open'
    const payout = item ? undefined : await findPaidPayout(relay, channel, event)
    if (payout?.status === 'pending') return 'transfer-open'
    const payoutId = item?.payout ?? (payout?.status === 'paid' ? undefined : payout?.id)
    const confirm = async (tx: Parameters<typeof endWithin>[0]) => {
      if (!item || (await endWithin(tx, relay, item, ending))) return
      throw new ItemError('item-gone', 'a worker has taken the item')
    }
    try {
      await sponsorChannel(context, {
        channel: channel.address,
        quotaAccount: item?.quotaAccount ?? event.from,
        signedXDR,
        confirm,
        ...(event.from !== channel.address && { delegated: payoutId ? { payoutId } : {} }),
      })
      return { item }
    } catch (error) {
      if (!isItemError(error, 'item-gone')) throw error
    }
  }
}

/**
 * The item that a payment of a channel was made for, if it has not ended; none if it was lost with its job. For a payment from
 * an escrow it is an item that pays the same payout, in any run of any wallet. A worker that has it unsigned loses it.
 */
async function findPaidItem(relay: Relay, channel: Channel, payment: TokenEvent): Promise<Item | undefined> {
  const { from, to } = payment
  const db = await relay.database()
  const { payout, recipient, status } = batchItems
  const isOfRun = and(isNotNull(payout), eq(recipient, to))
  const candidates = await db
    .select()
    .from(batchItems)
    .where(and(from === channel.address ? isNull(payout) : isOfRun, inArray(status, OPEN_ITEM)))
  const item = candidates.find((each) => isMarked(channel, payment, purposeOf(each)))
  if (item?.status !== 'taken') return item
  await requeue(relay, item, { because: 'handed-over' })
  return await findItem(db, item)
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
