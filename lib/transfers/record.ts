import { eq } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { claimPayout, organisationOfWallet, type PayoutClaim } from '#lib/directory/payouts/claims.ts'
import { currentRequestId } from '#lib/observability/log.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import type { CallRules } from './call-table.ts'
import type { FeeBump } from './fee-bump.ts'
import type { Intent } from './policy.ts'
import { type QuotaLimits, quotaDay, refuseExhausted, reserve } from './quota.ts'
import {
  addEnvelope,
  addTransfer,
  findEnvelopes,
  findTransferOfHash,
  isSameCall,
  lockOpenTransfer,
  type NewEnvelope,
  type RecordedTransfer,
} from './rows.ts'
import type { LedgerCheck } from './simulation.ts'

/** The difference between recording a client's transfer and recording a relay's. */
export interface RecordingTerms {
  /** the calls that it may be in place of a transfer */
  calls?: CallRules | undefined
  /** the payout that the client names, if any */
  payoutId?: string
  /** the account whose quota it counts against, if it isn't the payer's */
  quotaAccount?: string
  /** runs in the transaction that records it, and throws to stop it */
  confirm?: (tx: Database) => Promise<void>
}

/** The terms that a client's request can specify. */
export type ClientTerms = Pick<RecordingTerms, 'payoutId' | 'calls'>

/** A transfer to be recorded. */
export interface Proposal {
  inner: SignedTransaction
  intent: Intent
  terms: RecordingTerms
  now: Date
  /** the ledger's state that the caller has just read for the transaction that it signed */
  checked?: LedgerCheck | undefined
  /** aborts its verification */
  signal?: AbortSignal | undefined
}

/** The sponsor's part. `available`: the stroops that the ledger would let it spend. */
interface Sponsorship {
  bump: FeeBump
  sponsor: string
  recordedLedger: number
  limits: QuotaLimits
  available: bigint
}

/**
 * Records a transfer, claims its payout and reserves its maximum cost, in one SQL transaction, before anything is
 * submitted. An envelope that joins an open transfer reserves only the amount by which it bids more.
 * @throws SponsorRefusal if it doesn't fit the account's open transfer or the payout that the client names, or if it
 *   exceeds a quota, the budget or the float
 */
export function recordTransfer(
  db: Database,
  { inner, intent, terms, now }: Proposal,
  { bump, sponsor, recordedLedger, limits, available }: Sponsorship,
): Promise<Exclude<Recording, { kind: 'refused' }>> {
  return transact(db, async (tx) => {
    const organisation = await organisationOfWallet(tx, intent.owner ?? intent.account)
    const { quotaAccount = null, payoutId } = terms
    const recording = await recordEnvelope(
      tx,
      { ...rowOf(intent, now), sponsor, quotaAccount, recordedLedger, organisation },
      {
        innerHash: inner.hashHex,
        outerHash: bump.hash,
        signed: bump.envelope,
        bid: bump.bid,
        maxTime: Number(intent.maxTime),
      },
    )
    if (recording.kind === 'known') return recording
    if (recording.kind === 'refused') {
      const { reason, until } = recording
      throw sponsorRefused(reason, reason === 'another-open' ? { detail: new Date(until * 1000).toISOString() } : {})
    }
    await terms.confirm?.(tx)
    // A rival claims no payout by itself.
    const claims = recording.kind === 'begun' || payoutId !== undefined
    const transfer = claims ? await linkPayout(tx, recording.transfer, { payoutId }, now) : recording.transfer
    if (!transfer) throw sponsorRefused('payout')
    await auditRecorded(tx, transfer, inner, now)
    const claim = {
      kind: transfer.kind,
      account: transfer.quotaAccount ?? transfer.account,
      day: transfer.quotaDay,
      sponsor: transfer.sponsor ?? sponsor,
      bid: recording.extra,
      count: recording.kind === 'begun' && intent.kind !== 'delegated' ? (1 as const) : (0 as const),
    }
    await reserve(tx, claim, limits, available)
    return { ...recording, transfer }
  }).catch(refuseExhausted)
}

/** The columns of a transfer that follow from its intent. */
export const rowOf = (intent: Intent, now: Date) => ({
  kind: intent.kind,
  account: intent.account,
  owner: intent.owner,
  sequenceNumber: intent.sequenceNumber,
  recipient: intent.to,
  quotaDay: quotaDay(now),
  requestId: currentRequestId() ?? null,
  createdAt: now,
})

/** The payouts that a transfer may claim: the one that the client names, and those created before a given time. */
export type PayoutLimits = Pick<PayoutClaim, 'payoutId' | 'createdBefore' | 'mayBeDraft'>

/**
 * Claims a payout for a transfer, if one fits: the named one, or any for a client's transfer that names none. Other calls
 * pay no payout: the recipient of a merge is its own account, which may be a payee, too. A transfer with a payout keeps it.
 * Undefined if the named one doesn't fit.
 */
export async function linkPayout(
  tx: Database,
  transfer: Transfer,
  limits: PayoutLimits,
  now: Date,
): Promise<Transfer | undefined> {
  const { id, kind, organisation, recipient } = transfer
  const { payoutId = transfer.payout } = limits
  if (transfer.payout !== null) return payoutId === transfer.payout ? transfer : undefined
  const canPay = organisation !== null && (kind === 'transfer' || (kind === 'delegated' && payoutId !== null))
  const claim = { transfer: id, organisation: organisation ?? '', recipient, ...limits }
  const payout = canPay ? await claimPayout({ db: tx, now }, claim) : undefined
  if (payout === undefined) return payoutId === null ? transfer : undefined
  await tx.update(transfers).set({ payout }).where(eq(transfers.id, id))
  return { ...transfer, payout }
}

/** One row of the audit log for each envelope that is recorded. */
export async function auditRecorded(
  tx: Database,
  transfer: Transfer,
  inner: SignedTransaction,
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

/** The maximum number of envelopes that compete for one transfer: each is one more to look up. */
const MAX_ENVELOPES = 3

/** The first to commit creates the account's one open transfer; the others join it, unless it has been settled. */
const ATTEMPTS = 5

/** The columns that a transfer begins with. */
type NewTransfer = Pick<
  Transfer,
  'kind' | 'account' | 'sequenceNumber' | 'recipient' | 'quotaDay' | 'recordedLedger' | 'createdAt'
> &
  Partial<Pick<Transfer, 'owner' | 'sponsor' | 'quotaAccount' | 'organisation' | 'requestId'>>

/** The optional columns of NewTransfer. */
const UNSET = { owner: null, sponsor: null, quotaAccount: null, organisation: null, requestId: null }

/**
 * The result of recording an envelope. `begun`: it started a new transfer. `joined`: it competes for the open transfer of
 * its number, which now reserves `extra` stroops more. `known`: it was recorded before. `refused`: nothing was written.
 */
export type Recording =
  | ({ kind: 'begun' | 'joined'; extra: bigint } & RecordedTransfer)
  | ({ kind: 'known' } & RecordedTransfer)
  | { kind: 'refused'; reason: 'another-open' | 'other-recipient' | 'too-many-envelopes'; until: number }

/**
 * Records an envelope before it is submitted, inside the caller's SQL transaction. An account has at most one open
 * transfer. An envelope with the same number, call and recipient joins it under its row lock, which settlement also takes.
 */
export async function recordEnvelope(tx: Database, transfer: NewTransfer, envelope: NewEnvelope): Promise<Recording> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // No ledger up to the recorded one can include it.
    const row = { ...transfer, bid: envelope.bid, lookedUpLedger: transfer.recordedLedger }
    const [begun] = await addTransfer(tx, { ...UNSET, ...row })
    if (begun) return await begin(tx, begun, envelope)
    const open = await lockOpenTransfer(tx, transfer.account)
    if (open) return await join(tx, open, transfer, envelope)
  }
  throw new Error('the open transfers of an account change faster than they can be locked')
}

async function begin(tx: Database, transfer: Transfer, envelope: NewEnvelope): Promise<Recording> {
  const added = await addEnvelope(tx, transfer, envelope)
  if (added) return { kind: 'begun', extra: envelope.bid, transfer, envelopes: [added] }
  // The same envelope was recorded before, and its transfer has been settled.
  await tx.delete(transfers).where(eq(transfers.id, transfer.id))
  return await joinKnown(tx, envelope)
}

async function join(
  tx: Database,
  open: Transfer,
  { kind, owner = null, sequenceNumber, recipient, sponsor = null }: NewTransfer,
  envelope: NewEnvelope,
): Promise<Recording> {
  // The envelope may be recorded already, for this transfer or for an earlier one: a second request can be verified
  // before the first is answered.
  const existing = await findTransferOfHash(tx, envelope.innerHash)
  if (existing) return { kind: 'known', ...existing }
  const rivals = await findEnvelopes(tx, [open.id])
  const refused = (reason: (Recording & { kind: 'refused' })['reason']): Recording => ({
    kind: 'refused',
    reason,
    until: Math.max(...rivals.map(({ maxTime }) => maxTime)),
  })
  // The amounts of a transfer belong to one sponsor: after a change of the key, the next transfer has the new one.
  if (open.sequenceNumber !== sequenceNumber || open.sponsor !== sponsor) return refused('another-open')
  if (!isSameCall(open, { kind, owner, recipient })) return refused('other-recipient')
  if (rivals.length >= MAX_ENVELOPES) return refused('too-many-envelopes')
  if (!(await addEnvelope(tx, open, envelope))) return await joinKnown(tx, envelope)
  const extra = envelope.bid > open.bid ? envelope.bid - open.bid : 0n
  const raised = { bid: open.bid + extra, lookedUpLedger: null }
  await tx.update(transfers).set(raised).where(eq(transfers.id, open.id))
  return { kind: 'joined', extra, transfer: { ...open, ...raised }, envelopes: await findEnvelopes(tx, [open.id]) }
}

async function joinKnown(tx: Database, { innerHash }: NewEnvelope): Promise<Recording> {
  const existing = await findTransferOfHash(tx, innerHash)
  if (!existing) throw new Error('a recorded envelope cannot be found')
  return { kind: 'known', ...existing }
}
