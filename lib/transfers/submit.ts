import { z } from 'zod'
import type { Session } from '#lib/auth/session.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { decodeInner, type InnerTransaction } from './fee-bump.ts'
import type { RecordingTerms } from './record.ts'
import { findTransferOfHash } from './rows.ts'
import type { Sponsor } from './sponsor.ts'
import { renewSignatures, type Sponsored, verifyAndRecord } from './sponsorship.ts'
import type { Submission } from './submission.ts'
import type { Outcome } from './tracked.ts'

/** `hash` (64 hex digits) stands on the ledger as a success. */
export interface TransferResult {
  hash: string
  status: 'SUCCESS'
}

/** The parts of the service that sponsor a transfer. */
export interface SponsorContext {
  db: Database
  submission: Submission
  /** undefined if the service has no sponsor key: transfers that are recorded already are still answered */
  sponsor: Sponsor | undefined
  /** how long a request waits for the ledger, in milliseconds */
  patience: number
}

/**
 * The account whose transfers may be sponsored: only a wallet session has one. No body needs to be read to tell.
 * @throws Refusal `wallet-required`
 */
export function requirePayer(session: Session): string {
  if (session.kind === 'ledger') return session.sub
  throw new Refusal('wallet-required', 'transfers need a wallet session')
}

/** The body of POST /transfer. */
export const transferRequest = z.object(
  {
    signedXDR: z
      .string('signedXDR required')
      .min(1, 'signedXDR required')
      .meta({ description: 'the signed inner transaction, base64 XDR' }),
    payoutId: z.string('payoutId must be a string').optional().meta({
      description: 'the payout that the transfer pays; without it, the service finds one that fits',
      'x-extension': true,
    }),
  },
  'signedXDR required',
)
export type TransferRequest = z.output<typeof transferRequest>

/**
 * Pays the network fee of `signedXDR`, the confidential transfer that `payer` has built and signed, and waits for it.
 *
 * The same signed transaction is the same request, however often and wherever it arrives: it is recorded, and paid
 * for, once, and every caller gets what the ledger says.
 * @throws Refusal `signed-xdr-invalid`, `source-mismatch`, `refused`; `transfer-open`, `transfer-refused`,
 *   `transfer-replaced`, `transfer-failed`, `transfer-expired`, `transfer-unknown` when the answer is not a success
 */
export async function sponsorTransfer(
  context: SponsorContext,
  { payer, signedXDR, payoutId }: TransferRequest & { payer: string },
): Promise<TransferResult> {
  const inner = decodeOwn(context.submission.network.passphrase, { payer, signedXDR })
  return presentOutcome(inner.hashHex, await submit(context, inner, payoutId === undefined ? {} : { payoutId }))
}

/**
 * The transaction that `payer` has signed. It needs neither database nor ledger.
 * @throws Refusal `signed-xdr-invalid`, `source-mismatch`
 */
export function decodeOwn(
  passphrase: string,
  { payer, signedXDR }: { payer: string; signedXDR: string },
): InnerTransaction {
  const inner = decodeInner(signedXDR, passphrase)
  if (inner.source !== payer) {
    throw new Refusal('source-mismatch', 'transaction source is not your session account')
  }
  return inner
}

/** A transfer of a relay's channel account, which pays an item of a user's batch job. */
export interface ChannelTransfer {
  /** the payer, G-address */
  channel: string
  /** the account whose quota the transfer counts against */
  quotaAccount: string
  /** the transfer that the channel has signed, base64 XDR */
  signedXDR: string
  /** Runs in the SQL transaction that records the transfer, and throws if it is no longer the one to pay the item. */
  confirm(tx: Database): Promise<void>
}

/**
 * How a channel's transfer stands. `open`: submit the same transfer again, at any time. `refused`: the network refuses
 * it now, with a code; it may still apply until it expires, so submit it again. The others are final, and `hash` is
 * what stands on the ledger. With `unknown` nothing can be learned any more; its `hash` is the one under which it was
 * sent.
 */
type ChannelOutcome =
  | { status: 'open' }
  | { status: 'refused'; resultCode: string }
  | { status: 'succeeded'; hash: string }
  | { status: 'failed'; hash: string; resultCode: string; contractError: number | null }
  | { status: 'expired' }
  | { status: 'unknown'; hash: string }

/**
 * The relay's only way to the sponsor: submits the transfer that a channel has signed, waits at most `patience`
 * milliseconds for its end, and resolves to how it stands. The policy is that of a client's transfer, except that the
 * channel may pay, although the service controls it. To go on waiting, or after a restart, call it again with the very
 * same `signedXDR`: the transfer is recorded and paid for once. Nothing is recorded if `confirm` throws.
 * @throws SponsorRefusal when the sponsor does not pay; `unavailable` when ledger or database cannot be
 *   reached; and the errors of `confirm`
 */
export async function sponsorChannel(
  context: SponsorContext,
  { channel, signedXDR, quotaAccount, confirm }: ChannelTransfer,
): Promise<ChannelOutcome> {
  const inner = decodeInner(signedXDR, context.submission.network.passphrase)
  if (inner.source !== channel) throw new Refusal('source-mismatch', 'transaction source is not the channel')
  const { outcome, hash: sent } = await submit(context, inner, { quotaAccount, confirm }, channel)
  if (outcome.kind === 'open') return { status: 'open' }
  if (outcome.kind === 'refused') return { status: 'refused', resultCode: outcome.resultCode }
  const { status, hash, applied, resultCode, contractError } = outcome.transfer
  // Another transaction has used the sequence number: this transfer will never apply.
  if (status === 'succeeded' && applied !== inner.hashHex) return { status: 'expired' }
  if (status === 'succeeded' && hash !== null) return { status, hash }
  if (status === 'failed' && hash !== null) return { status, hash, resultCode: resultCode ?? '', contractError }
  return status === 'expired' ? { status } : { status: 'unknown', hash: sent }
}

/** The outcome, and the hash under which it was sent: that of the fee bump, or the inner one where there is none. */
interface Submitted {
  outcome: Outcome
  hash: string
}

async function submit(
  context: SponsorContext,
  inner: InnerTransaction,
  terms: RecordingTerms,
  channel?: string,
): Promise<Submitted> {
  const { submission, patience } = context
  const { recorded, isNew } = await findOrRecord(context, inner, terms, channel)
  const { hashHex: innerHash } = inner
  const outcome = await submission.submit(recorded, { innerHash, isNew, patience })
  return { outcome, hash: recorded.envelopes.find((one) => one.innerHash === innerHash)?.outerHash ?? innerHash }
}

async function findOrRecord(
  { db, sponsor }: SponsorContext,
  inner: InnerTransaction,
  terms: RecordingTerms,
  channel?: string,
): Promise<Sponsored> {
  const known = await findTransferOfHash(db, inner.hashHex)
  if (known) return { recorded: sponsor ? await renewSignatures(db, sponsor, inner, known) : known, isNew: false }
  if (!sponsor) throw new Refusal('sponsor-not-configured', 'no fee sponsor is configured')
  return await verifyAndRecord(db, sponsor, inner, { terms, channel })
}

function presentOutcome(innerHash: string, { outcome, hash: sent }: Submitted): TransferResult {
  if (outcome.kind === 'open') throw failed('transfer-open', { hash: sent })
  if (outcome.kind === 'refused') throw failed('transfer-refused', { hash: sent, reason: outcome.resultCode })
  const { status, hash, applied } = outcome.transfer
  if (status === 'expired') throw failed('transfer-expired', { hash: sent })
  if (status === 'unknown' || hash === null) throw failed('transfer-unknown', { hash: sent })
  if (status === 'succeeded' && applied === innerHash) return { hash, status: 'SUCCESS' }
  throw failed(status === 'succeeded' ? 'transfer-replaced' : 'transfer-failed', { hash })
}

type FailureCode =
  | 'transfer-open'
  | 'transfer-refused'
  | 'transfer-replaced'
  | 'transfer-failed'
  | 'transfer-expired'
  | 'transfer-unknown'

const failed = (code: FailureCode, details: { hash: string; reason?: string }) =>
  new Refusal(code, 'transfer failed', { details })
