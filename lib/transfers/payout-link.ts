import { and, desc, eq, isNotNull } from 'drizzle-orm'
import { type Transfer, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { SPONSOR } from '#lib/directory/payouts/claims.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { linkPayout, type PayoutLimits } from './record.ts'
import { settlePayout } from './settle.ts'

/**
 * Links a transfer that the client submitted directly: to the payout that the client names, else to that of an earlier
 * transfer with its sequence number, else to any payout that fits.
 */
export async function linkEarlierPayout(
  tx: Database,
  transfer: Transfer,
  limits: PayoutLimits,
  now: Date,
): Promise<Transfer | undefined> {
  if (limits.payoutId !== undefined) return await linkPayout(tx, transfer, limits, now)
  const { account, sequenceNumber } = transfer
  const earlier = await tx
    .select({ payout: transfers.payout })
    .from(transfers)
    .where(
      and(eq(transfers.account, account), eq(transfers.sequenceNumber, sequenceNumber), isNotNull(transfers.payout)),
    )
    .orderBy(desc(transfers.createdAt), desc(transfers.sequence))
  for (const { payout } of earlier) {
    const linked = payout && (await linkPayout(tx, transfer, { ...limits, payoutId: payout }, now))
    if (linked) return linked
  }
  return await linkPayout(tx, transfer, limits, now)
}

/** The ledger truncates its close time to whole seconds. */
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
    const { kind, payout, status, appliedAt } = transfer
    if (payout === payoutId || UNPAID.has(status)) return transfer
    // A payment from an escrow is marked with its payout.
    const isDated = kind !== 'delegated' && appliedAt !== null
    const limits = { payoutId, ...(isDated && { createdBefore: endOfSecond(appliedAt) }) }
    const linked = await linkPayout(tx, transfer, limits, now)
    if (!linked) {
      throw sponsorRefused('payout', {
        detail: 'this transaction is recorded already, do not build it again',
        details: { hash: transfer.hash ?? hash, status, ...(payout !== null && { payoutId: payout }) },
      })
    }
    await recordAudit(tx, now, {
      organisation: linked.organisation ?? undefined,
      actor: SPONSOR,
      action: 'payout.claimed',
      subject: payoutId,
      detail: { transfer: id },
    })
    if (status === 'succeeded') await settlePayout(tx, linked, now)
    return linked
  })
}
