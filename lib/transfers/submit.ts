import type { Database } from '#lib/db/connection.ts'
import { Refusal, type RefusalCode } from '#lib/refusal/refusal.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { recordApplied } from './applied.ts'
import { checkUntilRecent } from './doubt.ts'
import { wrapInFeeBump } from './fee-bump.ts'
import { linkRepeat } from './payout-link.ts'
import { readIntent } from './policy.ts'
import { type ClientTerms, type RecordingTerms, recordTransfer } from './record.ts'
import { noteRefusal } from './refusals.ts'
import { renewSignatures } from './renew.ts'
import { findOpenTransfer, findTransferAndClock, isRival, type RecordedTransfer } from './rows.ts'
import type { LedgerCheck } from './simulation.ts'
import type { Sponsor } from './sponsor.ts'
import type { Tracker } from './track.ts'
import { type Sponsored, verify } from './verification.ts'
import type { Outcome } from './waiters.ts'

/** The context that submitting a transfer needs. */
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

/**
 * Pays the network fee of the transfer that a client has signed, and waits for it, for at most `waitMs`.
 * @throws SponsorRefusal; Refusal `unavailable`, `sponsor-not-configured`; `transfer-open`, `transfer-refused`,
 *   `transfer-replaced`, `transfer-failed`, `transfer-expired`, `transfer-unknown` if it doesn't succeed
 */
export async function sponsorTransfer(
  context: TransferContext,
  inner: SignedTransaction,
  terms: ClientTerms | Promise<ClientTerms> = {},
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
 * Submits a client's transaction until the request's time is up. From then on the transfer is open if it was recorded;
 * otherwise its verification is abandoned. A recording in progress is completed, and a repeat of the request joins it.
 */
async function submitInTime(
  context: TransferContext,
  inner: SignedTransaction,
  terms: ClientTerms | Promise<ClientTerms>,
): Promise<Submission> {
  const time = new AbortController()
  const late = Promise.withResolvers<Submission>()
  let recordedAs: string | undefined
  const timer = setTimeout(() => {
    const refusal = new Refusal('unavailable', 'the time was up before the transfer was recorded')
    time.abort(refusal)
    if (recordedAs === undefined) late.reject(refusal)
    else late.resolve({ outcome: { kind: 'open' }, hash: recordedAs })
  }, context.waitMs)
  const onRecorded = (hash: string) => {
    recordedAs = hash
  }
  const read = async () => await submit(context, inner, { terms: await terms, signal: time.signal, onRecorded })
  return await Promise.race([read(), late.promise]).finally(() => clearTimeout(timer))
}

/** How a transfer ended for its caller, the hash under which its own transaction was submitted, and the transfer's id. */
interface Submission {
  outcome: Outcome
  hash: string
  transfer?: string
}

/**
 * Sponsors a signed transaction and waits for its outcome. The same transaction is the same request, no matter how
 * often and where it arrives: it is recorded and paid for once, and every caller gets the ledger's result.
 * @param channel the relay's, the one controlled address that may pay: its time bounds are checked by the ledger's time
 * @param signal aborts the verification, but nothing from the recording on
 * @param onRecorded receives the hash under which the transaction is submitted, once it is recorded
 * @throws SponsorRefusal; Refusal `unavailable`, `sponsor-not-configured`; the reason of `signal`
 */
export async function submit(
  context: TransferContext,
  inner: SignedTransaction,
  { terms, channel, checked, signal, onRecorded }: SubmitOptions,
): Promise<Submission> {
  const { tracker, sponsor, waitMs } = context
  const db = await tracker.database()
  const innerHash = inner.hashHex
  const hashOf = ({ envelopes }: RecordedTransfer) =>
    envelopes.find((one) => one.innerHash === innerHash)?.outerHash ?? innerHash
  const { existing, clock } = await findTransferAndClock(db, innerHash)
  if (existing) onRecorded?.(hashOf(existing))
  const timing = channel === undefined ? { now: clock } : {}
  if (!existing && !sponsor) throw new Refusal('sponsor-not-configured')
  const { recorded, isNew } = existing
    ? { recorded: sponsor ? await renewSignatures(db, sponsor, inner, existing) : existing, isNew: false }
    : await verifyAndRecord(db, { ...(sponsor as Sponsor), ...timing }, inner, { terms, channel, checked, signal })
  const hash = hashOf(recorded)
  onRecorded?.(hash)
  const { payoutId } = terms
  // A request that recorded its transfer has claimed its payout then, and so has the relay.
  const transfer =
    isNew || payoutId === undefined || recorded.transfer.kind === 'delegated'
      ? recorded.transfer
      : await linkRepeat(db, recorded.transfer.id, { payoutId, hash, now: clock() })
  const outcome = await tracker.submit({ ...recorded, transfer }, { innerHash, isNew, waitMs })
  return { outcome, hash, transfer: transfer.id }
}

interface SubmitOptions {
  terms: RecordingTerms
  channel?: string
  checked?: LedgerCheck | undefined
  signal?: AbortSignal
  onRecorded?: (hash: string) => void
}

const OLDER_MS = 5_000 // for a lookup of the account's older transfer

/** Makes every check that the sponsor requires, then records the transfer, which binds the sponsor. */
async function verifyAndRecord(
  db: Database,
  sponsor: Sponsor,
  inner: SignedTransaction,
  { terms, channel, checked, signal }: Omit<SubmitOptions, 'onRecorded'>,
): Promise<Sponsored> {
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
    const verified = await checkUntilRecent(
      (isFirst) => verify(db, strict, isFirst ? proposal : { ...proposal, checked: undefined }),
      { pollMs: network.pollMs, signal },
    )
    if ('recorded' in verified) return verified
    if ('applied' in verified) {
      const recorded = await recordApplied(db, { ...proposal, sponsor: keypair.publicKey() }, verified.applied)
      return { recorded, isNew: false }
    }
    const { recordedLedger, latestLedger } = verified
    if (channel === undefined && intent.kind === 'transfer') await sponsor.compareChannels()
    const available = await sponsor.readFloat(latestLedger)
    signal?.throwIfAborted()
    const bump = wrapInFeeBump(inner, keypair, network.passphrase)
    const sponsorship = { bump, sponsor: keypair.publicKey(), recordedLedger, limits, available }
    const { kind, ...recorded } = await recordTransfer(db, proposal, sponsorship)
    return { recorded, isNew: kind !== 'known' }
  } catch (error) {
    if (error instanceof SponsorRefusal) await noteRefusal(db, inner, { reason: error.reason, to }, sponsor.now())
    throw error
  }
}
