import { readEscrowPayments, type TokenEvent } from './channel-events.ts'
import { ItemError } from './item-error.ts'
import type { Item } from './item-row.ts'
import { isMarked, purposeOf } from './payment-mark.ts'
import type { Channel, Relay } from './relay.ts'

/** How many runs are remembered at most. */
const MOST_RUNS = 1_000

/**
 * Requires that the ledger shows no payment of the channel for the item's payout in the last 10,000 ledgers, even
 * if the database knows of none. A run's payments are read once per channel and process: those that follow are in the database.
 * @throws ItemError `payout-gone`; LedgerError
 */
export async function requireUnpaidOnLedger(relay: Relay, channel: Channel, item: Item, owner: string): Promise<void> {
  const { pastPayments } = relay.memory
  const run = `${item.job} ${channel.address}`
  let payments: readonly TokenEvent[] | undefined = pastPayments.get(run)
  if (!payments) {
    payments = await readEscrowPayments(relay, channel.address, owner)
    if (pastPayments.size >= MOST_RUNS) pastPayments.clear()
    pastPayments.set(run, payments)
  }
  const purpose = purposeOf(item)
  if (payments.some(({ fields }) => isMarked(channel, fields, purpose)))
    throw new ItemError('payout-gone', 'the ledger shows a payment for the payout')
}
