import { and, desc, eq, isNotNull } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { claimPayout, type PayoutClaim } from '#lib/directory/payouts/claims.ts'

/** Limits the payouts that a transfer may claim: to the one that the client names, or to those made before a moment. */
type Named = Pick<PayoutClaim, 'payoutId' | 'createdBefore'>

/** Claims the payout of a transfer that begins, if one fits. Undefined if the client names one that does not. */
export async function linkPayout(
  tx: Database,
  transfer: Transfer,
  named: Named,
  now: Date,
): Promise<Transfer | undefined> {
  const { id, organisation, recipient } = transfer
  const payout =
    organisation === null
      ? undefined
      : await claimPayout({ db: tx, now }, { transfer: id, organisation, recipient, ...named })
  if (payout === undefined) return named.payoutId === undefined ? transfer : undefined
  await tx.update(transfers).set({ payout }).where(eq(transfers.id, id))
  return { ...transfer, payout }
}

/**
 * Links the payout that a rival of an open transfer names. A transfer that has a payout keeps it, and no other fits.
 */
export async function linkRivalsPayout(
  tx: Database,
  open: Transfer,
  named: Named,
  now: Date,
): Promise<Transfer | undefined> {
  const { payoutId } = named
  if (payoutId === undefined || payoutId === open.payout) return open
  return open.payout === null ? await linkPayout(tx, open, named, now) : undefined
}

/**
 * Links a transfer that its client has sent by itself: to the payout that the client names, else to that of an earlier
 * transfer with its sequence number, else to any that fits.
 */
export async function linkEarlierPayout(
  tx: Database,
  transfer: Transfer,
  named: Named,
  now: Date,
): Promise<Transfer | undefined> {
  if (named.payoutId !== undefined) return await linkPayout(tx, transfer, named, now)
  const { account, sequenceNumber } = transfer
  const earlier = await tx
    .select({ payout: transfers.payout })
    .from(transfers)
    .where(
      and(eq(transfers.account, account), eq(transfers.sequenceNumber, sequenceNumber), isNotNull(transfers.payout)),
    )
    .orderBy(desc(transfers.createdAt), desc(transfers.sequence))
  for (const { payout } of earlier) {
    const linked = payout && (await linkPayout(tx, transfer, { ...named, payoutId: payout }, now))
    if (linked) return linked
  }
  return await linkPayout(tx, transfer, named, now)
}
