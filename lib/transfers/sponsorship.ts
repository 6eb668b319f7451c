import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { SponsorRefusal } from '#lib/refusal/sponsor-refusal.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import { recordApplied } from './applied.ts'
import { renewEnvelope } from './envelopes.ts'
import { type FeeBump, type InnerTransaction, wrapInFeeBump } from './fee-bump.ts'
import { type Intent, readIntent } from './policy.ts'
import { type Proposal, type RecordingTerms, recordTransfer } from './record.ts'
import { noteRefusal } from './refusals.ts'
import { findOpenTransfer, findTransferOfHash, type RecordedTransfer } from './rows.ts'
import type { Sponsor } from './sponsor.ts'
import { checkPayer, findApplied, isBehind, isOfTheMoment, type Verified, verify } from './verification.ts'

/** How long the network is asked again (ms) while its answers are older than what is already known of the payer. */
const DOUBT_MS = 5_000

/** How long a request waits for a poll of the account's older transfer (ms). */
const POLL_MS = 5_000

/** The transfer of a request. `isNew`: this very request has recorded the envelope. */
export interface Sponsored {
  recorded: RecordedTransfer
  isNew: boolean
}

/**
 * Checks everything that must hold before the sponsor pays, then records the transfer, which binds the sponsor. It
 * refuses and agrees only on recent answers: one RPC address may stand for several nodes, and some lag.
 * @param options.channel the one controlled address that may pay
 * @throws SponsorRefusal; LedgerError `unavailable`
 */
export async function verifyAndRecord(
  db: Database,
  sponsor: Sponsor,
  inner: InnerTransaction,
  { terms, channel }: { terms: RecordingTerms; channel: string | undefined },
): Promise<Sponsored> {
  try {
    const controlled = new Set(await sponsor.controlledAddresses(db))
    if (channel !== undefined) controlled.delete(channel)
    const intent = readIntent(inner, { ...sponsor.rules, controlled })
    await decideOlder(db, sponsor, intent)
    return await agree(db, sponsor, { inner, intent, terms, now: sponsor.now() })
  } catch (error) {
    if (error instanceof SponsorRefusal) await noteRefusal(db, inner, error.reason, sponsor.now())
    throw error
  }
}

/** An account has one open transfer at most, so the older one is decided first, if that can be. */
async function decideOlder(db: Database, { submission }: Sponsor, { from, sequenceNumber, to }: Intent): Promise<void> {
  const open = await findOpenTransfer(db, from)
  if (open && (open.sequenceNumber !== sequenceNumber || open.recipient !== to)) await submission.poll(open, POLL_MS)
}

async function agree(db: Database, sponsor: Sponsor, proposal: Proposal): Promise<Sponsored> {
  const deadline = performance.now() + DOUBT_MS
  for (;;) {
    const attempt = await attemptOnce(db, sponsor, proposal)
    if ('recorded' in attempt) return attempt
    if (performance.now() >= deadline) {
      throw new LedgerError('unavailable', 'the ledger has fallen behind', { cause: attempt.cause })
    }
    await new Promise((resolve) => setTimeout(resolve, sponsor.network.pollMs))
  }
}

/** Resolves to a `cause` if the network's answer is too old to rely on. */
async function attemptOnce(
  db: Database,
  sponsor: Sponsor,
  proposal: Proposal,
): Promise<Sponsored | { cause: unknown }> {
  const { inner, intent } = proposal
  let verified: Verified
  try {
    verified = await verify(sponsor, inner, intent)
  } catch (error) {
    if (!(error instanceof SponsorRefusal) || !isOfTheMoment(error.reason)) throw error
    // The same transaction, sent twice at once, looks stale to the slower request as soon as the faster has applied.
    const meanwhile = await findTransferOfHash(db, inner.hashHex)
    if (meanwhile) return { recorded: meanwhile, isNew: false }
    // A refusal by the clock rests on no ledger: then it must be absent from the one that there is now.
    const asOf = error.asOf ?? (await sponsor.submission.readAccount(inner.source)).latestLedger
    const applied = await findApplied(sponsor, inner, asOf)
    if (applied === 'unsure' || (applied === 'absent' && (await isBehind(db, inner.source, asOf)))) {
      return { cause: error }
    }
    if (applied === 'absent') throw error
    const recorded = await recordApplied(db, proposal, { record: applied, books: sponsor.submission.books })
    return { recorded, isNew: false }
  }
  const { recordedLedger, latestLedger } = verified
  if (await isBehind(db, inner.source, recordedLedger)) return { cause: undefined }
  const available = await sponsor.readFloat(latestLedger)
  const given = { sponsor: sponsor.keypair.publicKey(), recordedLedger, limits: sponsor.limits, available }
  const { kind, ...recorded } = await recordTransfer(db, proposal, { ...given, bump: wrap(sponsor, inner) })
  return { recorded, isNew: kind !== 'known' }
}

const wrap = ({ keypair, network }: Sponsor, inner: InnerTransaction): FeeBump =>
  wrapInFeeBump(inner, keypair, network.passphrase)

/** The result codes by which the network refuses an envelope for its signatures. */
const SIGNATURE_CODES = new Set(['txBadAuth', 'txBadAuthExtra'])

/**
 * Replaces a stored envelope that the network refused for its signatures, once the same transaction is posted again
 * with signatures that hold. The inner hash stays the same.
 */
export async function renewSignatures(
  db: Database,
  sponsor: Sponsor,
  inner: InnerTransaction,
  known: RecordedTransfer,
): Promise<RecordedTransfer> {
  const stored = known.envelopes.find(({ innerHash }) => innerHash === inner.hashHex)
  if (!stored || known.transfer.status !== 'open' || !SIGNATURE_CODES.has(stored.resultCode ?? '')) return known
  const bump = wrap(sponsor, inner)
  if (bump.hash === stored.outerHash || known.transfer.sponsor !== sponsor.keypair.publicKey()) return known
  try {
    checkPayer(inner, await sponsor.submission.readAccount(inner.source))
  } catch (error) {
    // These signatures do not hold either, or the ledger cannot be asked: the stored envelope stays.
    if (error instanceof Refusal || error instanceof LedgerError) return known
    throw error
  }
  await renewEnvelope(db, stored, { outerHash: bump.hash, signed: bump.envelope })
  return (await findTransferOfHash(db, inner.hashHex)) ?? known
}
