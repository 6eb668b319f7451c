import { and, desc, eq, isNotNull } from 'drizzle-orm'
import { type Transfer, type TransferKind, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { claimPayout, type PayoutClaim } from '#lib/directory/payouts/claims.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { settlePayout } from './settle.ts'

/**
 * Limits the payouts that a transfer may claim: to the one that the client names, or to those created before a given
 * time.
 */
type Named = Pick<PayoutClaim, 'payoutId' | 'createdBefore'>

/** Only these calls pay their recipient: the recipient of a merge is its own account, which may be a payee, too. */
const PAYING: ReadonlySet<TransferKind> = new Set(['transfer', 'delegated'])

/** Claims a payout for a new transfer, if one fits. Undefined if the client names one that doesn't fit. */
export async function linkPayout(
  tx: Database,
  transfer: Transfer,
  named: Named,
  now: Date,
): Promise<Transfer | undefined> {
  const { id, kind, organisation, recipient } = transfer
  const payout =
    organisation === null || !PAYING.has(kind)
      ? undefined
      : await claimPayout({ db: tx, now }, { transfer: id, organisation, recipient, ...named })
  if (payout === undefined) return named.payoutId === undefined ? transfer : undefined
  await tx.update(transfers).set({ payout }).where(eq(transfers.id, id))
  return { ...transfer, payout }
}

/** Links the payout that a rival of an open transfer names. A transfer with a payout keeps it, and accepts no other. */
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
 * Links a transfer that the client submitted directly: to the payout that the client names, else to that of an earlier
 * transfer with its sequence number, else to any payout that fits.
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

/** The ledger cuts its close time to whole seconds. */
export const endOfSecond = (closedAt: Date) => new Date(closedAt.getTime() + 1000)

/** A transfer that ended with one of these statuses pays nothing, so a repeat gets the recorded response. */
const UNPAID = new Set<TransferStatus>(['failed', 'expired', 'unknown'])

/**
 * Responds to the repeat of a recorded transaction that names a payout. A transfer without a payout claims the named one
 * if it fits and was created before the ledger that applied the transfer, and settles it in the same SQL transaction.
 * @param hash the hash to name in a refusal
 * @throws SponsorRefusal `payout` if the transfer pays another payout, or if the named one doesn't fit
 */
export async function linkRepeat(
  db: Database,
  id: string,
  { payoutId, hash, now }: { payoutId: string; hash: string; now: Date },
): Promise<Transfer> {
  return await transact(db, async (tx) => {
    const [transfer] = await tx.select().from(transfers).where(eq(transfers.id, id)).for('no key update')
    if (!transfer) throw new Error('a transfer that is repeated was never recorded')
    const { payout, status, appliedAt } = transfer
    if (payout === payoutId || UNPAID.has(status)) return transfer
    const named = { payoutId, ...(appliedAt && { createdBefore: endOfSecond(appliedAt) }) }
    const linked = payout === null ? await linkPayout(tx, transfer, named, now) : undefined
    if (!linked) {
      throw sponsorRefused('payout', {
        detail: 'this transaction is recorded already, do not build it again',
        details: { hash: transfer.hash ?? hash, status, ...(payout !== null && { payoutId: payout }) },
      })
    }
    if (status === 'succeeded') await settlePayout(tx, linked, now)
    return linked
  })
}
