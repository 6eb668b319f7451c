import type { Database } from '#lib/db/connection.ts'
import { Refusal, type RefusalCode } from '#lib/refusal/refusal.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { recordApplied } from './applied.ts'
import { wrapInFeeBump } from './fee-bump.ts'
import { linkRepeat } from './payout-link.ts'
import { decodeInner, readIntent } from './policy.ts'
import { type ClientTerms, type RecordingTerms, recordTransfer } from './record.ts'
import { noteRefusal } from './refusals.ts'
import { renewSignatures } from './renew.ts'
import { findOpenTransfer, findTransferAndClock, isRival, type RecordedTransfer } from './rows.ts'
import type { LedgerCheck } from './simulation.ts'
import type { Sponsor } from './sponsor.ts'
import type { Tracker } from './track.ts'
import { verify } from './verification.ts'
import type { Outcome } from './waiters.ts'

export interface TransferContext {
  tracker: Tracker
  /** undefined if the service has no sponsor key: repeats of recorded transfers still get their response */
  sponsor: Sponsor | undefined
  /** how long a client's request may take, or the relay's may wait for the ledger, in milliseconds */
  waitMs: number
}

/** `hash` (64 hex digits) was applied as a success. */
export interface TransferResult {
  hash: string
  status: 'SUCCESS'
}

type GivenTerms = ClientTerms | Promise<ClientTerms>

/**
 * Pays the network fee of the transfer that a client has signed, and waits for it, for at most `waitMs`.
 * @throws SponsorRefusal; Refusal `unavailable`, `sponsor-not-configured`; `transfer-open`, `transfer-refused`,
 *   `transfer-replaced`, `transfer-failed`, `transfer-expired`, `transfer-unknown` if it doesn't succeed
 */
export async function sponsorTransfer(
  context: TransferContext,
  inner: SignedTransaction,
  terms: GivenTerms = {},
): Promise<TransferResult> {
  const { outcome, hash: sent } = await submitInTime(context, inner, terms)
  if (outcome.kind === 'open' || outcome.kind === 'gone') throw failed('transfer-open', { hash: sent })
  if (outcome.kind === 'refused') throw failed('transfer-refused', { hash: sent, reason: outcome.resultCode })
  const { status, hash, applied, resultCode } = outcome.transfer
  if (status === 'expired' && resultCode !== null) {
    throw failed('transfer-replaced', { hash: sent, reason: 'unknown-transaction' })
  }
  if (status === 'expired') throw failed('transfer-expired', { hash: sent })
  if (status === 'unknown' || hash === null) throw failed('transfer-unknown', { hash: sent })
  if (status === 'succeeded' && applied === inner.hashHex) return { hash, status: 'SUCCESS' }
  throw failed(status === 'succeeded' ? 'transfer-replaced' : 'transfer-failed', { hash })
}

const failed = (code: RefusalCode, details: { hash: string; reason?: string }) =>
  new Refusal(code, 'transfer failed', { details })

/**
 * Submits a client's transaction until the request's time is up. Then the transfer is open if it was recorded; otherwise its
 * verification is abandoned. A recording in progress is completed, and a repeat of the request joins it.
 */
async function submitInTime(context: TransferContext, inner: SignedTransaction, terms: GivenTerms) {
  const time = new AbortController()
  const late = Promise.withResolvers<Submission>()
  let recorded: Omit<Submission, 'outcome'> | undefined
  const timer = setTimeout(() => {
    const refusal = new Refusal('unavailable', 'the time was up before the transfer was recorded')
    time.abort(refusal)
    if (recorded) late.resolve({ outcome: { kind: 'open' }, ...recorded })
    else late.reject(refusal)
  }, context.waitMs)
  const onRecorded: SubmitOptions['onRecorded'] = (submission) => {
    recorded = submission
  }
  const read = async () => await submit(context, inner, { terms: await terms, signal: time.signal, onRecorded })
  return await Promise.race([read(), late.promise]).finally(() => clearTimeout(timer))
}

/** How a transfer ended for its caller, the hash under which its own transaction was submitted, and the transfer's id. */
interface Submission {
  outcome: Outcome
  hash: string
  transfer: string
}

/**
 * Sponsors a signed transaction and waits for its outcome. However often and wherever it arrives, it is the same request: it is
 * recorded and paid for once, and every caller gets the ledger's result.
 * @param channel the relay's, the one controlled address that may pay: its time bounds are checked by the ledger's time
 * @param signal aborts the verification, but nothing from the recording on
 * @throws SponsorRefusal; Refusal `unavailable`, `sponsor-not-configured`; the reason of `signal`
 */
async function submit(context: TransferContext, inner: SignedTransaction, options: SubmitOptions): Promise<Submission> {
  const { tracker, sponsor, waitMs } = context
  const { terms, channel, onRecorded } = options
  const db = await tracker.database()
  const innerHash = inner.hashHex
  const nameOf = ({ transfer: { id: transfer }, envelopes }: RecordedTransfer) => {
    return { transfer, hash: envelopes.find((one) => one.innerHash === innerHash)?.outerHash ?? innerHash }
  }
  const { existing, clock } = await findTransferAndClock(db, innerHash)
  if (existing) onRecorded?.(nameOf(existing))
  const timing = channel === undefined ? { now: clock } : {}
  if (!existing && !sponsor) throw new Refusal('sponsor-not-configured')
  const { recorded, isNew } = existing
    ? { recorded: sponsor ? await renewSignatures(db, sponsor, inner, existing) : existing, isNew: false }
    : await verifyAndRecord(db, { ...(sponsor as Sponsor), ...timing }, inner, options)
  const submission = nameOf(recorded)
  onRecorded?.(submission)
  const { payoutId } = terms
  // A request that recorded its transfer has claimed its payout then, and so has the relay.
  const transfer =
    isNew || payoutId === undefined || recorded.transfer.kind === 'delegated'
      ? recorded.transfer
      : await linkRepeat(db, submission.transfer, { payoutId, hash: submission.hash, now: clock() })
  return { outcome: await tracker.submit({ ...recorded, transfer }, { innerHash, isNew, waitMs }), ...submission }
}

interface SubmitOptions {
  terms: RecordingTerms
  channel?: string
  checked?: LedgerCheck | undefined
  signal?: AbortSignal
  /** called once the transaction is recorded */
  onRecorded?: (submission: Omit<Submission, 'outcome'>) => void
}

/** How long a request waits (ms) for a lookup of the account's older transfer. */
const OLDER_MS = 5_000

/** Makes every check, then records the transfer, which binds the sponsor. `isNew`: this very request has recorded the envelope. */
async function verifyAndRecord(db: Database, sponsor: Sponsor, inner: SignedTransaction, options: SubmitOptions) {
  const { terms, channel, checked, signal } = options
  const { network, tracker, keypair, rules, limits } = sponsor
  let to: string | undefined
  try {
    const intent = readIntent(inner, { ...rules, calls: terms.calls })
    if (intent.kind === 'transfer') to = intent.to
    const controlled = new Set(await sponsor.controlledAddresses(db))
    if (channel !== undefined) controlled.delete(channel)
    const strict = { ...sponsor, rules: { ...rules, controlled, calls: terms.calls } }
    // An account has at most one open transfer, so settle the older one first, if possible.
    const open = await findOpenTransfer(db, intent.account)
    if (open && !isRival(open, intent)) await tracker.track([open.id], { waitMs: OLDER_MS, lookUp: 'requested' })
    const proposal = { inner, intent, terms, checked, signal, now: sponsor.now() }
    const own = { sponsor: keypair.publicKey() }
    const verified = await verify(db, strict, proposal)
    if ('recorded' in verified) return { ...verified, isNew: false }
    if ('applied' in verified) {
      return { recorded: await recordApplied(db, { ...proposal, ...own }, verified.applied), isNew: false }
    }
    // The ledger has applied it, and this node does not know that yet.
    if (terms.onFound) throw new LedgerError('unavailable', 'the RPC lags behind a payment that it has shown')
    const { recordedLedger, latestLedger } = verified
    if (channel === undefined && intent.kind === 'transfer') await sponsor.compareChannels()
    const available = await sponsor.readFloat(latestLedger)
    signal?.throwIfAborted()
    const bump = wrapInFeeBump(inner, keypair, network.passphrase)
    const sponsorship = { bump, ...own, recordedLedger, limits, available }
    const { kind, ...recorded } = await recordTransfer(db, proposal, sponsorship)
    return { recorded, isNew: kind !== 'known' }
  } catch (error) {
    if (error instanceof SponsorRefusal) await noteRefusal(db, inner, { reason: error.reason, to }, sponsor.now())
    throw error
  }
}

/** A transfer of a relay's channel account, which pays a line of a user's job or run. */
export interface ChannelTransfer extends Pick<RecordingTerms, 'onFound'> {
  channel: string
  /** the account whose quota the transfer counts against */
  quotaAccount: string
  /** the transfer that the channel has signed, base64 XDR */
  signedXDR: string
  /** undefined for a payment that was found on the ledger, and whose line was lost */
  line: RecordingTerms['line']
  /** the ledger's state that the caller has just read for this transaction */
  checked?: LedgerCheck | undefined
  /** set if the channel pays from the escrow of a delegation, with the payout that it pays, if that is recorded */
  delegated?: Pick<RecordingTerms, 'payoutId' | 'organisation'>
}

/** The call that a channel may make when it pays from an escrow. */
const FROM_ESCROW = new Set(['confidential_transfer_from'])
const DELEGATED = { functions: FROM_ESCROW, channels: new Set<string>(), auditorId: 0, marginLedgers: 0 }

/**
 * The relay's only way to the sponsor: records the transfer that a channel has signed, and begins to submit it. The policy is
 * that of a client's transfer, except that the channel may pay although the service controls it. Resolves to the transfer's id;
 * from then on any process finds out how it ends, and ends its line with it. Nothing is recorded if `claim` of the line throws.
 * @throws SponsorRefusal; Refusal `unavailable` if the ledger or the database is unreachable; and the errors of `claim`
 */
export async function sponsorChannel(
  context: Omit<TransferContext, 'waitMs'>,
  { channel, signedXDR, quotaAccount, line, checked, delegated, onFound }: ChannelTransfer,
): Promise<string> {
  const inner = decodeInner(signedXDR, context.tracker.network.passphrase)
  if (inner.source !== channel) throw new Refusal('source-mismatch', 'transaction source is not the channel')
  const terms = { quotaAccount, line, onFound, ...(delegated && { ...delegated, calls: DELEGATED }) }
  return (await submit({ ...context, waitMs: 0 }, inner, { terms, channel, checked })).transfer
}
