import { and, desc, eq, isNotNull } from 'drizzle-orm'
import { envelopes, type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { claimPayout, organisationOfWallet, type PayoutClaim } from '#lib/directory/payouts/claims.ts'
import type { LedgerRecord } from '#lib/submission/ledger-record.ts'
import { addEnvelope, lockOpenTransfer, type Recording, recordEnvelope } from '#lib/submission/recording.ts'
import { type Books, fieldsOf, settleLocked } from '#lib/submission/settlement.ts'
import { findTransfer, findTransferOfHash, type RecordedTransfer } from '#lib/submission/transfers.ts'
import type { FeeBump } from './fee-bump.ts'
import type { InnerTransaction } from './inner-transaction.ts'
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
    const transfer = await linkPayout(tx, recording.transfer, { begins: recording.kind === 'begun', payoutId, now })
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

const rowOf = (intent: Intent, now: Date) => ({
  account: intent.from,
  sequenceNumber: intent.sequenceNumber,
  recipient: intent.to,
  quotaDay: quotaDay(now),
  createdAt: now,
})

const envelopeOf = ({ hashHex: innerHash }: InnerTransaction, { maxTime }: Intent, bump?: FeeBump) => ({
  innerHash,
  outerHash: bump?.hash ?? null,
  signed: bump?.envelope ?? null,
  bid: bump?.bid ?? 0n,
  // A client may send its own transaction with any 64-bit maxTime.
  maxTime: Math.min(Number(maxTime), Number.MAX_SAFE_INTEGER),
})

/** The payout stays with the transfer: a rival may name one only where there is none. */
async function linkPayout(
  tx: Database,
  transfer: Transfer,
  { begins, payoutId, now }: { begins: boolean; payoutId: string | undefined; now: Date },
): Promise<Transfer> {
  if (payoutId !== undefined && transfer.payout !== null && transfer.payout !== payoutId) throw sponsorRefused('payout')
  if (transfer.payout !== null || (!begins && payoutId === undefined)) return transfer
  const payout = await claim(tx, transfer, { payoutId }, now)
  if (payoutId !== undefined && !payout) throw sponsorRefused('payout')
  return payout === undefined ? transfer : await notePayout(tx, transfer, payout)
}

async function notePayout(tx: Database, transfer: Transfer, payout: string): Promise<Transfer> {
  await tx.update(transfers).set({ payout }).where(eq(transfers.id, transfer.id))
  return { ...transfer, payout }
}

async function claim(
  tx: Database,
  { id: transfer, organisation, recipient }: Transfer,
  named: Pick<PayoutClaim, 'payoutId' | 'createdBefore'>,
  now: Date,
): Promise<string | undefined> {
  return organisation === null ? undefined : await claimPayout(tx, { transfer, organisation, recipient, ...named }, now)
}

async function auditRecorded(tx: Database, transfer: Transfer, inner: InnerTransaction, now: Date): Promise<void> {
  await recordAudit(tx, now, {
    organisation: transfer.organisation ?? undefined,
    actor: { kind: 'ledger', sub: transfer.account },
    action: 'transfer.sponsored',
    subject: { kind: 'transfer', id: inner.hashHex },
    detail: { transfer: transfer.id, ...(transfer.payout !== null && { payout: transfer.payout }) },
  })
}

/**
 * Writes down what a client has sent by itself and what stands on the ledger as a success, with a bid of nothing. Where an
 * open transfer of this number pays the same recipient, it has made that one. Else it settles a payout that was made before
 * the ledger closed: first that of an earlier transfer with this number, which was to be paid by it.
 * @throws SponsorRefusal when the payout that the client names does not fit
 */
export function recordApplied(
  db: Database,
  { inner, intent, terms, now }: Proposal,
  { record, books }: { record: LedgerRecord; books: Books },
): Promise<RecordedTransfer> {
  const settled = { status: 'succeeded' as const, record, feeCharged: 0n }
  return transact(db, async (tx) => {
    const envelope = envelopeOf(inner, intent)
    const open = await lockOpenTransfer(tx, intent.from)
    const known = await findTransferOfHash(tx, inner.hashHex)
    if (known) return known
    await terms.confirm?.(tx)
    if (open && open.sequenceNumber === intent.sequenceNumber && open.recipient === intent.to) {
      await addEnvelope(tx, open, envelope)
      await settleLocked(tx, open, { decision: settled, now, books })
      return await require(tx, open.id)
    }
    const organisation = await organisationOfWallet(tx, intent.from)
    const quotaAccount = terms.quotaAccount ?? null
    const row = { ...rowOf(intent, now), quotaAccount, organisation, recordedLedger: record.ledger, bid: 0n }
    const ended = { status: 'succeeded' as const, settledAt: now, ...fieldsOf(settled) }
    const [written] = await tx
      .insert(transfers)
      .values({ ...row, ...ended })
      .returning()
    if (!written) throw new Error('nothing was written')
    if (!(await addEnvelope(tx, written, envelope))) {
      // The same request, made twice at once: the other one has written it down.
      await tx.delete(transfers).where(eq(transfers.id, written.id))
      return await requireOf(tx, envelope.innerHash)
    }
    const payout = await claimForApplied(tx, written, { payoutId: terms.payoutId, closedAt: record.closedAt }, now)
    if (terms.payoutId !== undefined && !payout) throw sponsorRefused('payout')
    const linked = payout === undefined ? written : await notePayout(tx, written, payout)
    await auditRecorded(tx, linked, inner, now)
    await books(tx, linked, now)
    return await require(tx, linked.id)
  })
}

async function claimForApplied(
  tx: Database,
  transfer: Transfer,
  { payoutId, closedAt }: { payoutId: string | undefined; closedAt: number },
  now: Date,
): Promise<string | undefined> {
  // The time of a ledger is cut to whole seconds.
  const createdBefore = new Date((closedAt + 1) * 1000)
  if (payoutId !== undefined) return await claim(tx, transfer, { payoutId, createdBefore }, now)
  const earlier = await tx
    .select({ payout: transfers.payout })
    .from(transfers)
    .where(
      and(
        eq(transfers.account, transfer.account),
        eq(transfers.sequenceNumber, transfer.sequenceNumber),
        isNotNull(transfers.payout),
      ),
    )
    .orderBy(desc(transfers.createdAt), desc(transfers.sequence))
  for (const { payout } of earlier) {
    const claimed = payout && (await claim(tx, transfer, { payoutId: payout, createdBefore }, now))
    if (claimed) return claimed
  }
  return await claim(tx, transfer, { payoutId: undefined, createdBefore }, now)
}

async function require(tx: Database, id: string): Promise<RecordedTransfer> {
  const found = await findTransfer(tx, id)
  if (!found) throw new Error('the transfer is gone')
  return found
}

async function requireOf(tx: Database, innerHash: string): Promise<RecordedTransfer> {
  const found = await findTransferOfHash(tx, innerHash)
  if (!found) throw new Error('the envelope is gone')
  return found
}

/** Puts newer signatures in the place of those for which the network refused an envelope. */
export async function replaceSignatures(db: Database, innerHash: string, bump: FeeBump): Promise<void> {
  await db
    .update(envelopes)
    .set({ outerHash: bump.hash, signed: bump.envelope, resultCode: null })
    .where(eq(envelopes.innerHash, innerHash))
}
