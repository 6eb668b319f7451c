import { and, eq, inArray, isNotNull, isNull, notExists } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { batchItems } from '#drizzle/schema/relay.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { RUNNABLE } from '#lib/directory/payouts/seals.ts'
import type { TokenEvent } from './channel-events.ts'
import { requeue } from './item.ts'
import { findItem, type Item } from './item-row.ts'
import { isMarked, purposeOf } from './payment-mark.ts'
import type { Channel, Relay } from './relay.ts'

/**
 * The unpaid item that a payment of a channel was made for, which no row of the database names; none if it was lost with its
 * job. For a payment from an escrow it is an item that pays the same payout in any run. A worker that has it loses it.
 */
export async function findPaidItem(relay: Relay, channel: Channel, payment: TokenEvent): Promise<Item | undefined> {
  const { from, to, fields } = payment
  const db = await relay.database()
  const { payout, recipient, quotaAccount, status } = batchItems
  const isOfRun = and(isNotNull(payout), eq(recipient, to), eq(quotaAccount, from))
  const candidates = await db
    .select()
    .from(batchItems)
    .where(and(from === channel.address ? isNull(payout) : isOfRun, inArray(status, ['queued', 'taken'])))
  const item = candidates.find((each) => isMarked(channel, fields, purposeOf(each)))
  if (item?.status !== 'taken') return item
  await requeue(relay, item, { because: 'handed-over' })
  return await findItem(db, item)
}

/** The unpaid payout that a payment from an escrow was made for, if it is not part of a run. */
export async function findPaidPayout(
  relay: Relay,
  channel: Channel,
  { from, to, fields }: TokenEvent,
): Promise<string | undefined> {
  const db = await relay.database()
  const organisation = await organisationOfWallet(db, from)
  if (from === channel.address || organisation === null) return undefined
  const isOfRun = and(eq(batchItems.payout, payouts.id), isNull(batchItems.settledAt))
  const candidates = await db
    .select({ id: payouts.id })
    .from(payouts)
    .where(
      and(
        eq(payouts.organisation, organisation),
        eq(payouts.address, to),
        inArray(payouts.status, [...RUNNABLE]),
        notExists(db.select().from(batchItems).where(isOfRun)),
      ),
    )
  return candidates.find(({ id }) => isMarked(channel, fields, id))?.id
}
