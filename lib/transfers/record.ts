import { and, desc, eq, isNotNull } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { claimPayout, organisationOfWallet, type PayoutClaim } from '#lib/directory/payouts/claims.ts'
import { type PayoutOutcome, SETTLEMENT, settlePayout } from '#lib/directory/payouts/settlement.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { type Recording, recordEnvelope } from './envelopes.ts'
import type { FeeBump, InnerTransaction } from './fee-bump.ts'
import type { Intent } from './policy.ts'
import { type QuotaLimits, quotaDay, release, reserve } from './quota.ts'

/** The difference between recording a client's transfer and recording a relay's. */
export interface RecordingTerms {
  /** the payout that the client names, if it does */
  payoutId?: string
  /** the account whose quota it counts against, if not its own */
  quotaAccount?: string
  /** runs in the transaction that records it, and throws to stop it */
  confirm?: (tx: Database) => Promise<void>
}

/** A transfer that is to be recorded. */
export interface Proposal {
  inner: InnerTransaction
  intent: Intent
  terms: RecordingTerms
  now: Date
}

/**
 * Records a transfer, claims the payout that it pays and reserves what it may cost, in one SQL transaction, before
 * anything is sent. An envelope that joins an open transfer reserves only what it bids above that transfer.
 * @throws SponsorRefusal when it does not fit the account's open transfer or the payout that the client names, or a
 *   quota, the budget or the float does not allow it
 */
export function recordTransfer(
  db: Database,
  { inner, intent, terms, now }: Proposal,
  given: { bump: FeeBump; sponsor: string; recordedLedger: number; limits: QuotaLimits; available: bigint },
): Promise<Exclude<Recording, { kind: 'refused' }>> {
  const { bump, sponsor, recordedLedger, limits, available } = given
  return transact(db, async (tx) => {
    const organisation = await organisationOfWallet(tx, intent.from)
    const { quotaAccount = null, payoutId } = terms
    const recording = await recordEnvelope(
      tx,
      { ...rowOf(intent, now), sponsor, quotaAccount, recordedLedger, organisation },
      envelopeOf(inner, intent, bump),
    )
    if (recording.kind === 'known') return recording
    if (recording.kind === 'refused') {
      const { reason, until } = recording
      throw sponsorRefused(reason, reason === 'another-open' ? { detail: new Date(until * 1000).toISOString() } : {})
    }
    await terms.confirm?.(tx)
    const link = recording.kind === 'begun' ? linkPayout : linkRivalsPayout
    const transfer = await link(tx, recording.transfer, { payoutId }, now)
    if (!transfer) throw sponsorRefused('payout')
    await auditRecorded(tx, transfer, inner, now)
    const claim = {
      account: transfer.quotaAccount ?? transfer.account,
      day: transfer.quotaDay,
      sponsor: transfer.sponsor ?? sponsor,
      bid: recording.extra,
      count: recording.kind === 'begun' ? (1 as const) : (0 as const),
    }
    await reserve(tx, claim, limits, available)
    return { ...recording, transfer }
  })
}

/** The columns of a transfer that follow from its intent. */
export const rowOf = (intent: Intent, now: Date) => ({
  account: intent.from,
  sequenceNumber: intent.sequenceNumber,
  recipient: intent.to,
  quotaDay: quotaDay(now),
  createdAt: now,
})

const envelopeOf = ({ hashHex: innerHash }: InnerTransaction, { maxTime }: Intent, bump: FeeBump) => ({
  innerHash,
  outerHash: bump.hash,
  signed: bump.envelope,
  bid: bump.bid,
  maxTime: Number(maxTime),
})

/** One row of the audit log for each envelope that is recorded. */
export async function auditRecorded(
  tx: Database,
  transfer: Transfer,
  inner: InnerTransaction,
  now: Date,
): Promise<void> {
  await recordAudit(tx, now, {
    organisation: transfer.organisation ?? undefined,
    actor: { kind: 'ledger', sub: transfer.account },
    action: 'transfer.sponsored',
    subject: inner.hashHex,
    detail: { transfer: transfer.id, ...(transfer.payout !== null && { payout: transfer.payout }) },
  })
}

/** Limits the payouts that a transfer may claim: to the one that the client names, or to those made before a moment. */
type Named = Pick<PayoutClaim, 'payoutId' | 'createdBefore'>

/** Claims the payout of a transfer that begins, if one fits. Undefined if the client names one that does not. */
async function linkPayout(tx: Database, transfer: Transfer, named: Named, now: Date): Promise<Transfer | undefined> {
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

/**
 * Gives the payout of a settled transfer its outcome, and turns what the transfer reserved into what it cost. Runs in
 * the SQL transaction that settles the transfer.
 */
export async function bookTransfer(tx: Database, settled: Transfer, now: Date): Promise<void> {
  const { id, applied, account, quotaAccount, quotaDay, sponsor, bid, payout, status, organisation } = settled
  await recordAudit(tx, now, {
    organisation: organisation ?? undefined,
    actor: SETTLEMENT,
    action: 'transfer.settled',
    subject: applied ?? id,
    detail: { transfer: id, status },
  })
  if (payout) await settlePayout({ db: tx, now }, { payout, transfer: id, outcome: outcomeOf(settled) })
  if (sponsor === null) return
  // If the end is unknown, the ledger may have charged the whole bid.
  const charged = status === 'unknown' ? bid : (settled.feeCharged ?? 0n)
  await release(tx, { account: quotaAccount ?? account, day: quotaDay, sponsor, bid }, charged)
}

function outcomeOf({ status, hash, resultCode, contractError }: Transfer): PayoutOutcome {
  if (status === 'succeeded' && hash) return { status: 'paid', txHash: hash }
  if (status === 'expired') return { status: 'failed', error: 'the transfer expired before it reached the ledger' }
  if (status === 'unknown') {
    return {
      status: 'pending',
      error: 'the history of the ledger no longer shows whether the transfer was paid: ask the payee, then cancel it',
    }
  }
  const contract = contractError === null ? '' : `, contract error ${contractError}`
  return { status: 'failed', error: `the transfer failed on the ledger: ${resultCode}${contract}` }
}
