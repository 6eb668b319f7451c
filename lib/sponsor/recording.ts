import type { Transfer } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { type Recording, recordEnvelope } from '#lib/submission/recording.ts'
import type { FeeBump } from './fee-bump.ts'
import type { InnerTransaction } from './inner-transaction.ts'
import { linkPayout, linkRivalsPayout } from './payout-link.ts'
import type { Intent } from './policy.ts'
import { type QuotaLimits, quotaDay, reserve } from './quota.ts'
import { sponsorRefused } from './refusal-reason.ts'

/** On what terms a transfer is recorded: they differ between a client's transfers and the relay's. */
export interface RecordingTerms {
  /** the payout that the client names, if it does */
  payoutId?: string
  /** whose quota it counts against, if not the account's own */
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
 * Writes a transfer down, claims the payout that it pays and reserves what it may cost, in one SQL transaction, before
 * anything is sent. What competes for an open transfer reserves only what it bids more.
 * @throws SponsorRefusal when it does not fit the account's open transfer or the payout that the client names, or a quota,
 *   the budget or the float does not allow it
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

/** The columns that a transfer has from what it asks for. */
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
    subject: { kind: 'transfer', id: inner.hashHex },
    detail: { transfer: transfer.id, ...(transfer.payout !== null && { payout: transfer.payout }) },
  })
}
