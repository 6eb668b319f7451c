import { and, desc, eq, isNotNull } from 'drizzle-orm'
import { type Transfer, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { claimPayout, type PayoutClaim, SPONSOR } from '#lib/directory/payouts/claims.ts'
import { explainUnfit, UNFIT, type UnfitReason } from '#lib/directory/payouts/unfit.ts'
import { type SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { lockTransfer } from './rows.ts'
import { settlePayout } from './settle.ts'

/** The payouts that a transfer may claim: the one that the client names, and those created before a given time. */
type PayoutLimits = Pick<PayoutClaim, 'payoutId' | 'createdBefore' | 'wasLost'>

/**
 * Claims a payout for a transfer, if one fits: the named one, or any for a client's transfer that names none. Other calls
 * pay no payout: the recipient of a merge is its own account, which may be a payee, too. A transfer with a payout keeps it.
 * Undefined if the named one doesn't fit.
 */
export async function linkPayout(tx: Database, transfer: Transfer, limits: PayoutLimits, now: Date) {
  const { id, kind, organisation, recipient } = transfer
  const { payoutId = transfer.payout } = limits
  if (transfer.payout !== null) return payoutId === transfer.payout ? transfer : undefined
  const canPay = organisation !== null && (kind === 'transfer' || (kind === 'delegated' && payoutId !== null))
  const claim = { transfer: id, organisation: organisation ?? '', recipient, ...limits }
  const payout = canPay ? await claimPayout({ db: tx, now }, claim) : undefined
  if (payout === undefined) return payoutId === null ? transfer : undefined
  if (limits.wasLost) {
    // The end of an earlier transfer was unknown: it was this payment that was made.
    const isUnknown = and(eq(transfers.payout, payout), eq(transfers.status, 'unknown'))
    await tx.update(transfers).set({ payout: null, foundFor: payout }).where(isUnknown)
  }
  await tx.update(transfers).set({ payout }).where(eq(transfers.id, id))
  return { ...transfer, payout }
}

/** Links a client's own transaction: to the named payout, else to that of an earlier transfer with its number, else to any that fits. */
export async function linkEarlierPayout(tx: Database, transfer: Transfer, limits: PayoutLimits, now: Date) {
  const { account, sequenceNumber } = transfer
  const isEarlier = and(eq(transfers.account, account), eq(transfers.sequenceNumber, sequenceNumber))
  const earlier = await tx
    .select({ payoutId: transfers.payout })
    .from(transfers)
    .where(and(isEarlier, isNotNull(transfers.payout)))
    .orderBy(desc(transfers.createdAt), desc(transfers.sequence))
  for (const { payoutId } of limits.payoutId === undefined ? earlier : []) {
    const linked = payoutId && (await linkPayout(tx, transfer, { ...limits, payoutId }, now))
    if (linked) return linked
  }
  return await linkPayout(tx, transfer, limits, now)
}

/** The refusal of the payout that a client names, with the reason and what to do. */
export async function payoutUnfit(db: Database, transfer: Unlinked, limits: PayoutLimits): Promise<SponsorRefusal> {
  const { reason, ...details } = await whyUnfit(db, transfer, limits)
  return sponsorRefused('payout', { detail: UNFIT[reason], details: { reason, ...details } })
}

type Unlinked = Pick<Transfer, 'payout' | 'organisation' | 'recipient'>

/** Why the named payout does not fit; with the hash that has paid it, or the payout that the transfer pays. */
async function whyUnfit(
  db: Database,
  { payout, organisation, recipient }: Unlinked,
  { payoutId = '', createdBefore }: PayoutLimits,
): Promise<{ reason: UnfitReason; hash?: string; payoutId?: string }> {
  if (payout !== null) return { reason: 'other-payout', payoutId: payout }
  return await explainUnfit(db, { organisation, recipient, payoutId, ...(createdBefore && { createdBefore }) })
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
    const transfer = await lockTransfer(tx, id)
    if (!transfer) throw new Error('a transfer that is repeated was never recorded')
    const { kind, payout, status, appliedAt } = transfer
    if (payout === payoutId || UNPAID.has(status)) return transfer
    // A payment from an escrow is marked with its payout.
    const isDated = kind !== 'delegated' && appliedAt !== null
    const limits = { payoutId, ...(isDated && { createdBefore: endOfSecond(appliedAt) }) }
    const linked = await linkPayout(tx, transfer, limits, now)
    if (!linked) {
      const { hash: paidBy, ...details } = await whyUnfit(tx, transfer, limits)
      throw sponsorRefused('payout', {
        detail: 'this transaction is recorded already, do not build it again',
        details: { ...details, ...(paidBy && { paidBy }), hash: transfer.hash ?? hash, status },
      })
    }
    const entry = { organisation: linked.organisation ?? undefined, actor: SPONSOR, subject: payoutId }
    await recordAudit(tx, now, { ...entry, action: 'payout.claimed', detail: { transfer: id } })
    if (status === 'succeeded') await settlePayout(tx, linked, now)
    return linked
  })
}
