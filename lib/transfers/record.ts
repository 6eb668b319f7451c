import { eq } from 'drizzle-orm'
import { type Transfer, transfers } from '#drizzle/schema/transfers.ts'
import { recordAudit } from '#lib/db/audit-log.ts'
import { readClock } from '#lib/db/clock.ts'
import { type Database, transact } from '#lib/db/connection.ts'
import { organisationOfWallet } from '#lib/directory/payouts/claims.ts'
import { currentRequestId } from '#lib/observability/log.ts'
import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import type { SignedCall } from '#lib/wallet/transaction.ts'
import type { CallRules } from './call-table.ts'
import type { FeeBump } from './fee-bump.ts'
import type { LineId } from './line.ts'
import { linkPayout, payoutUnfit } from './payout-link.ts'
import type { Intent } from './policy.ts'
import { claimOf, type QuotaLimits, quotaDay, reserve } from './quota.ts'
import {
  addEnvelope,
  beginTransfer,
  findEnvelopes,
  findTransferOfHash,
  isSameCall,
  lockOpenTransfer,
  maxTimeOf,
  type NewEnvelope,
  type NewTransfer,
  type RecordedTransfer,
} from './rows.ts'
import type { LedgerCheck } from './simulation.ts'
import { isReconciling, refuseForeignNetwork } from './stop.ts'

/** The difference between recording a client's transfer and recording a relay's. */
export interface RecordingTerms {
  /** the calls that it may be in place of a transfer */
  calls?: CallRules | undefined
  /** the payout that the client names, if any */
  payoutId?: string
  /** the organisation of the payout that a found payment was made for, if its wallet may have another one by now */
  organisation?: string
  /** the account whose quota it counts against, if it isn't the payer's */
  quotaAccount?: string
  /** the line that a channel pays with it */
  line?: LinePayment | undefined
  /** runs in the SQL transaction that records a payment that was found on the ledger, with whether a payout shows it */
  onFound?: ((tx: Database, isShown: boolean) => Promise<void>) | undefined
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
 * @throws SponsorRefusal if it doesn't fit the account's open transfer or the payout that the client names, or exceeds a limit
 */
export function recordTransfer(db: Database, proposal: Proposal, sponsorship: Sponsorship): Promise<Recording> {
  const { bump, sponsor, recordedLedger, limits, available } = sponsorship
  const { inner, intent, now } = proposal
  const { payoutId, line } = proposal.terms
  return transact(db, async (tx) => {
    const row = { ...(await rowOf(tx, proposal)), sponsor, recordedLedger }
    const { organisation } = row
    await (line ? line.claim(tx) : refuseForeignNetwork(tx))
    const { hash: outerHash, envelope: signed, bid } = bump
    const envelope = { innerHash: inner.hashHex, outerHash, signed, bid, maxTime: Number(intent.maxTime) }
    const recording = await recordEnvelope(tx, row, { ...envelope, sealedOpening: line?.sealedOpening ?? null })
    if (recording.kind === 'known') return recording
    const pays = line === undefined && intent.kind === 'transfer' && recording.kind === 'begun'
    if (pays && organisation !== null && (await isReconciling(tx, { organisation, recipient: intent.to, payoutId }))) {
      throw sponsorRefused('reconciling', { retryAfter: RECONCILING_SECONDS })
    }
    // A rival claims no payout by itself.
    const claims = recording.kind === 'begun' || payoutId !== undefined
    const transfer = claims ? await linkPayout(tx, recording.transfer, { payoutId }, now) : recording.transfer
    if (!transfer) throw await payoutUnfit(tx, recording.transfer, { payoutId })
    await auditRecorded(tx, transfer, proposal)
    const count = recording.kind === 'begun' && transfer.kind !== 'delegated' ? 1 : 0
    await reserve(tx, { ...claimOf(transfer, count), bid: recording.extra }, limits, available)
    return { ...recording, transfer }
  })
}

/** When a client may ask again (s) whether payments go on. */
const RECONCILING_SECONDS = 30

/** The columns of a transfer that follow from its proposal. */
export const rowOf = async (tx: Database, { intent, terms, now }: Proposal) => ({
  kind: intent.kind,
  account: intent.account,
  owner: intent.owner,
  sequenceNumber: intent.sequenceNumber,
  recipient: intent.to,
  organisation: terms.organisation ?? (await organisationOfWallet(tx, intent.owner ?? intent.account)),
  quotaAccount: terms.quotaAccount ?? null,
  quotaDay: quotaDay(now),
  lineJob: terms.line?.job ?? null,
  linePosition: terms.line?.position ?? null,
  requestId: currentRequestId() ?? null,
  createdAt: now,
})

/** One row of the audit log for each envelope that is recorded. */
export async function auditRecorded(tx: Database, transfer: Transfer, { inner, now }: Proposal): Promise<void> {
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

/**
 * The result of recording an envelope. `begun`: it started a new transfer. `joined`: it competes for the open transfer of
 * its number, which now reserves `extra` stroops more. `known`: it was recorded before.
 */
type Recording = RecordedTransfer & ({ kind: 'begun' | 'joined'; extra: bigint } | { kind: 'known' })

/**
 * Records an envelope before it is submitted, inside the caller's SQL transaction. An account has at most one open
 * transfer. An envelope with the same number, call and recipient joins it under its row lock, which settlement also takes.
 * @throws SponsorRefusal `another-open`, `other-recipient`, `too-many-envelopes`: nothing is written
 */
async function recordEnvelope(tx: Database, transfer: NewTransfer, envelope: NewEnvelope): Promise<Recording> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const begun = await beginTransfer(tx, transfer, envelope)
    if (begun === 'known') return await joinKnown(tx, envelope)
    if (begun !== 'taken') return { kind: 'begun', extra: envelope.bid, ...begun }
    const open = await lockOpenTransfer(tx, transfer.account)
    if (open) return await join(tx, open, transfer, envelope)
  }
  throw new Error('the open transfers of an account change faster than they can be locked')
}

async function join(tx: Database, open: Transfer, row: NewTransfer, envelope: NewEnvelope): Promise<Recording> {
  const { kind, owner = null, sequenceNumber, recipient, sponsor = null, lineJob = null, linePosition = null } = row
  // The envelope may be recorded already, for this transfer or for an earlier one: a second request can be verified
  // before the first is answered.
  const existing = await findTransferOfHash(tx, envelope.innerHash)
  if (existing) return { kind: 'known', ...existing }
  const rivals = await findEnvelopes(tx, [open.id])
  // The amounts of a transfer belong to one sponsor: after a change of the key, the next transfer has the new one. Two hosts with
  // the same seed may have signed the payments of two lines with the same number.
  const isSame = open.sequenceNumber === sequenceNumber && open.sponsor === sponsor
  if (!isSame || open.lineJob !== lineJob || open.linePosition !== linePosition) {
    throw sponsorRefused('another-open', { detail: new Date(maxTimeOf(rivals) * 1000).toISOString() })
  }
  if (!isSameCall(open, { kind, owner, recipient })) throw sponsorRefused('other-recipient')
  if (rivals.length >= MAX_ENVELOPES) throw sponsorRefused('too-many-envelopes')
  const added = await addEnvelope(tx, open, envelope)
  if (!added) return await joinKnown(tx, envelope)
  const extra = envelope.bid > open.bid ? envelope.bid - open.bid : 0n
  const raised = { bid: open.bid + extra, lookedUpLedger: null }
  await tx.update(transfers).set(raised).where(eq(transfers.id, open.id))
  return { kind: 'joined', extra, transfer: { ...open, ...raised }, envelopes: [...rivals, added] }
}

async function joinKnown(tx: Database, { innerHash }: NewEnvelope): Promise<Recording> {
  const existing = await findTransferOfHash(tx, innerHash)
  if (!existing) throw new Error('a recorded envelope cannot be found')
  return { kind: 'known', ...existing }
}

/**
 * Records a call whose fee its own account pays, as the faucet's deposits and a channel's registration and merges, before it is
 * submitted. Undefined, and nothing is written, if the account has an open transfer, if the same call was recorded before and has
 * been settled, or if `mayBegin` resolves to false.
 */
export async function recordUnsponsored(
  db: Database,
  transfer: Omit<NewTransfer, 'quotaDay' | 'createdAt'>,
  { hash: innerHash, signedXdr: signed, maxTime }: SignedCall,
  mayBegin: (tx: Database) => Promise<boolean>,
): Promise<RecordedTransfer | undefined> {
  const now = new Date(await readClock(db))
  return await transact(db, async (tx) => {
    await refuseForeignNetwork(tx)
    if (!(await mayBegin(tx))) return undefined
    const row = { ...transfer, quotaDay: quotaDay(now), createdAt: now }
    const begun = await beginTransfer(tx, row, { innerHash, outerHash: null, signed, bid: 0n, maxTime })
    return typeof begun === 'string' ? undefined : begun
  })
}
