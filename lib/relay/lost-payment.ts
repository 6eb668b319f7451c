import { and, asc, desc, eq, inArray, isNull, notExists, or } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { batchItems } from '#drizzle/schema/relay.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { readConfidentialAccount } from '#lib/wallet/account.ts'
import { decryptSent } from '#lib/wallet/decryption.ts'
import type { TokenEvent } from './channel-events.ts'
import { findChannel } from './channel-state.ts'
import { requeue } from './item.ts'
import { findItem, type Item, oldestFirst } from './item-row.ts'
import type { Relay } from './relay.ts'
import { unsealAmount, unsealPayout } from './sealing.ts'

/** A payment of a channel that no row of the database has. `amount` in base units, undefined if it cannot be decrypted. */
type LostPayment = TokenEvent & { amount: bigint | undefined }

/**
 * The amount that a channel paid, from its own balance or from an escrow. Undefined on a host without the channel's seed.
 * @throws LedgerError
 */
export async function readAmount(
  relay: Relay,
  address: string,
  { to, fields }: TokenEvent,
): Promise<bigint | undefined> {
  const channel = relay.channels.find((own) => own.address === address)
  const payee = channel && (await readConfidentialAccount(relay.network.server, relay.token, to))
  return payee && decryptSent(channel.keys.vk, payee.viewingKey, fields)
}

/**
 * The item that a payment paid: of the unpaid ones for its payee, and with its amount if that is known, the oldest; none if
 * it was lost with its job. For a payment from an escrow it is an item of a run that the escrow's owner has delegated to the
 * channel. A worker that has it loses it.
 */
export async function findPaidItem(relay: Relay, channel: string, payment: LostPayment): Promise<Item | undefined> {
  const { from, to, amount } = payment
  const db = await relay.database()
  const isOfPayee = eq(batchItems.recipient, to)
  // An item of a job without a recipient pays one of the channels.
  const isOfJob = and(
    isNull(batchItems.payout),
    (await findChannel(relay, to)) ? or(isOfPayee, isNull(batchItems.recipient)) : isOfPayee,
  )
  const isOfRun = and(isOfPayee, eq(batchItems.spender, channel), eq(batchItems.quotaAccount, from))
  const candidates = await db
    .select({ item: batchItems, payout: { batch: payouts.batch, contractor: payouts.contractor } })
    .from(batchItems)
    .leftJoin(payouts, eq(payouts.id, batchItems.payout))
    .where(and(from === channel ? isOfJob : isOfRun, inArray(batchItems.status, ['queued', 'taken'])))
    .orderBy(...oldestFirst)
  for (const { item, payout } of candidates) {
    const sealed = item.sealedAmount ?? ''
    const unseal = async () =>
      payout
        ? await unsealPayout(relay.key, { ...payout, spender: channel }, sealed)
        : await unsealAmount(relay.key, item, sealed)
    if (amount !== undefined && (await unseal().catch(() => undefined)) !== amount) continue
    if (item.status !== 'taken') return item
    await requeue(relay, item, { because: 'handed-over' })
    return await findItem(db, item)
  }
  return undefined
}

/**
 * The payout that a payment from an escrow paid, if its run was lost. It is one of the owner's unpaid payouts for the payee,
 * and not part of another run: if possible one whose seal for this channel holds this amount, otherwise one whose amount is
 * unknown. Ready payouts come first, oldest first, then failed ones, newest first.
 */
export async function findPaidPayout(
  relay: Relay,
  channel: string,
  { from, to, amount }: LostPayment,
): Promise<string | undefined> {
  const db = await relay.database()
  const organisation = await organisationOfWallet(db, from)
  if (from === channel || organisation === null) return undefined
  const items = db.select().from(batchItems)
  const isOfRun = and(eq(batchItems.payout, payouts.id), isNull(batchItems.settledAt))
  const find = (status: 'ready' | 'failed') =>
    db
      .select()
      .from(payouts)
      .where(
        and(
          eq(payouts.organisation, organisation),
          eq(payouts.address, to),
          eq(payouts.status, status),
          notExists(items.where(isOfRun)),
        ),
      )
      .orderBy(...(status === 'ready' ? [asc(payouts.createdAt)] : [desc(payouts.createdAt)]))
  const candidates = [...(await find('ready')), ...(await find('failed'))]
  const amounts = await Promise.all(
    candidates.map(({ batch, contractor, encryptedAmount }) =>
      unsealPayout(relay.key, { batch, contractor, spender: channel }, encryptedAmount ?? '').catch(() => undefined),
    ),
  )
  const isPaid = (due: bigint | undefined) => due !== undefined && due === amount
  const exact = candidates.find((_, index) => isPaid(amounts[index]))
  const possible = candidates.find((_, index) => amount === undefined || amounts[index] === undefined)
  return (exact ?? possible)?.id
}
