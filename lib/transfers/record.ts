import type { Transfer } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { currentRequestId } from '#lib/observability/log.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import type { CallRules } from './call-table.ts'
import type { FeeBump } from './fee-bump.ts'
import type { LineId } from './line.ts'
import { type Recording, recordEnvelope } from './open-transfer.ts'
import { linkPayout } from './payout-link.ts'
import type { Intent } from './policy.ts'
import { type QuotaLimits, quotaDay, refuseExhausted, reserve } from './quota.ts'
import type { LedgerCheck } from './simulation.ts'
import { isReconciling, refuseForeignNetwork } from './stop.ts'

/** The difference between recording a client's transfer and recording a relay's. */
export interface RecordingTerms {
  /** the calls that it may be in place of a transfer */
  calls?: CallRules | undefined
  /** the payout that the client names, if any */
  payoutId?: string
  /** the account whose quota it counts against, if it isn't the payer's */
  quotaAccount?: string
  /** the line that a channel pays with it */
  line?: LinePayment | undefined
  /** runs in the SQL transaction that records a payment that was found on the ledger */
  onFound?: ((tx: Database) => Promise<void>) | undefined
}

/** A channel's payment of a line. */
export interface LinePayment extends LineId {
  /** the opening of the channel's balance once it has applied, as a JWE for the relay */
  sealedOpening: string | null
  /** Locks the line in the SQL transaction that records the transfer. Throws if it may not pay the line. */
  claim(tx: Database): Promise<void>
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
): Promise<Recording> {
  return transact(db, async (tx) => {
    const row = { ...(await rowOf(tx, { intent, terms, now })), sponsor, recordedLedger }
    const { organisation } = row
    const { payoutId, line } = terms
    await (line ? line.claim(tx) : refuseForeignNetwork(tx))
    const recording = await recordEnvelope(tx, row, {
      innerHash: inner.hashHex,
      outerHash: bump.hash,
      signed: bump.envelope,
      sealedOpening: line?.sealedOpening ?? null,
      bid: bump.bid,
      maxTime: Number(intent.maxTime),
    })
    if (recording.kind === 'known') return recording
    const pays = line === undefined && intent.kind === 'transfer' && recording.kind === 'begun'
    if (pays && organisation !== null && (await isReconciling(tx, { organisation, recipient: intent.to, payoutId }))) {
      throw sponsorRefused('reconciling', { retryAfter: RECONCILING_SECONDS })
    }
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

/** When a client may ask again (s) whether payments go on. */
const RECONCILING_SECONDS = 30

/** The columns of a transfer that follow from its proposal. */
export const rowOf = async (tx: Database, { intent, terms, now }: Pick<Proposal, 'intent' | 'terms' | 'now'>) => ({
  kind: intent.kind,
  account: intent.account,
  owner: intent.owner,
  sequenceNumber: intent.sequenceNumber,
  recipient: intent.to,
  organisation: await organisationOfWallet(tx, intent.owner ?? intent.account),
  quotaAccount: terms.quotaAccount ?? null,
  quotaDay: quotaDay(now),
  lineJob: terms.line?.job ?? null,
  linePosition: terms.line?.position ?? null,
  requestId: currentRequestId() ?? null,
  createdAt: now,
})

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
