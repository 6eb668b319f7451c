import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '#lib/db/connection.ts'
import { type RefusalReason, SponsorRefusal, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { type AccountAuth, type AccountReading, authOf } from '#lib/stellar/account.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { weighSignatures } from '#lib/stellar/node/signature-weight.ts'
import { isLagging, SILENT_SECONDS } from '#lib/stellar/view.ts'
import { checkLiveUntil } from './call-table.ts'
import type { LedgerRecord } from './decide.ts'
import { lookUpOwnTransaction } from './look-up.ts'
import { checkPolicy, checkTimeBounds } from './policy.ts'
import type { Proposal } from './record.ts'
import { findTransferOfHash, lastLedgerOf, type RecordedTransfer } from './rows.ts'
import { checkArchived, checkResourceFee, checkResources, simulate } from './simulation.ts'
import type { Sponsor } from './sponsor.ts'

/** How long a request waits (ms) for a response as recent as earlier ones, and for a ledger that closes after its arrival. */
const DOUBT_MS = 5_000
const NEXT_LEDGER_MS = 15_000

/** The refusals based on time, account and simulation: a moment later they may no longer apply. */
const OF_THE_MOMENT: ReadonlySet<RefusalReason> = new Set([
  'not-yet-valid',
  'no-expiry',
  'expires-too-soon',
  'expires-too-late',
  'bad-signature',
  'too-little-weight',
  'extra-signature',
  'no-account',
  'sequence',
  'excess-instructions',
  'excess-bytes',
  'excess-footprint',
  'too-few-resources',
  'low-resource-fee',
  'excess-resource-fee',
  'would-fail',
  'live-until',
])

export const isOfTheMoment = (reason: RefusalReason): boolean => OF_THE_MOMENT.has(reason)

/** Whether a refusal depends on the rent that other payments paid. */
export const dependsOnRent = (reason: RefusalReason): boolean =>
  reason === 'low-resource-fee' || reason === 'excess-resource-fee'

/** What the ledger shows of a transaction: it may be recorded, the client has submitted it, or another request has recorded it. */
type Verified =
  | { recordedLedger: number; latestLedger: number }
  | { applied: LedgerRecord }
  | { recorded: RecordedTransfer }

/** The checks relied on a response that is too old, and led to this refusal, if any. */
type Doubt = { doubt: SponsorRefusal | undefined }

/**
 * Verifies a transaction by the policy and against the ledger, until a response is recent enough to refuse or to agree on.
 * @throws SponsorRefusal; LedgerError `unavailable` if no response is recent in time; the reason of the proposal's `signal`
 */
export async function verify(db: Database, sponsor: Sponsor, proposal: Proposal): Promise<Verified> {
  const beganAt = performance.now()
  for (let given = proposal; ; given = { ...proposal, checked: undefined }) {
    given.signal?.throwIfAborted()
    const verdict = await verifyOnce(db, sponsor, given)
    if (!('doubt' in verdict)) return verdict
    const { doubt } = verdict
    const patienceMs = doubt && dependsOnRent(doubt.reason) ? NEXT_LEDGER_MS : DOUBT_MS
    if (performance.now() >= beganAt + patienceMs) {
      throw new LedgerError('unavailable', 'the ledger has fallen behind', { cause: doubt })
    }
    await pause(sponsor.network.pollMs)
  }
}

/** Before any refusal, the transaction is looked up: what the ledger has applied is not refused. */
async function verifyOnce(db: Database, sponsor: Sponsor, proposal: Proposal): Promise<Verified | Doubt> {
  const { network, tracker, keypair, rules, now } = sponsor
  const { inner, intent, terms, checked, signal } = proposal
  const isBehind = async (ledger: number) => isLagging(ledger, await lastLedgerOf(db, inner.source))
  /** the ledger of the response that the last checks were based on */
  let checkedAt: number | undefined
  try {
    checkPolicy(inner, intent, rules)
    checkTimeBounds(intent, Math.floor(now().getTime() / 1000))
    // Needed later, it shares the call.
    sponsor.readFloat(tracker.view.latestLedger()).catch(() => undefined)
    const reading = checked?.account ?? (await tracker.readAccount(inner.source))
    checkPayer(inner, reading)
    const needed = checked?.simulation ?? (await simulate(network, inner))
    const { latestLedger } = needed
    checkedAt = latestLedger
    checkLiveUntil(intent.liveUntilLedger, terms.calls?.marginLedgers ?? 0, latestLedger)
    checkResources(intent.resources, needed.resources)
    await checkArchived(network, intent, needed)
    checkResourceFee({ ...intent, fee: intent.resourceFee }, { ...needed, fee: needed.minResourceFee })
    const recordedLedger = Math.min(reading.latestLedger, latestLedger)
    return (await isBehind(recordedLedger)) ? { doubt: undefined } : { recordedLedger, latestLedger }
  } catch (error) {
    if (!(error instanceof SponsorRefusal)) throw error
    // The same transaction, posted twice at once, looks stale to the slower request once the faster one was applied.
    const meanwhile = await findTransferOfHash(db, inner.hashHex)
    if (meanwhile) return { recorded: meanwhile }
    // A refusal based on the clock names no ledger, so the transaction must be absent from the latest one.
    const asOf = error.asOf ?? checkedAt ?? (await tracker.readAccount(inner.source)).latestLedger
    const since = dependsOnRent(error.reason)
      ? Math.floor(proposal.now.getTime() / 1000)
      : now().getTime() / 1000 - SILENT_SECONDS
    const ours = { innerHash: inner.hashHex, sponsor: keypair.publicKey() }
    const own = await lookUpOwnTransaction(network, ours, { asOf, since })
    // After that lookup, the latest known ledger is the network's actual one, even if the network was reset.
    const isStale = asOf < tracker.view.latestLedger() || (await isBehind(asOf))
    if (own === 'unsure' || (own === 'absent' && isStale)) return { doubt: error }
    if (own === 'absent') throw error
    signal?.throwIfAborted()
    return { applied: own }
  }
}

/**
 * Reads the payer's account each time, even if its master key signed: that key may have lost its weight, and simulation
 * doesn't check the sequence number. A transfer that the network rejects at submission costs nothing, but its bid stays
 * reserved until it expires, and enough of them would exhaust the budget.
 * @throws SponsorRefusal
 */
export function checkPayer(inner: SignedTransaction, { account, latestLedger }: AccountReading): void {
  checkSignatures(inner, account ? authOf(inner.source, account) : { exists: false }, latestLedger)
  if (account && inner.envelope.tx.seqNum !== account.seqNum + 1n) {
    throw sponsorRefused('sequence', { asOf: latestLedger })
  }
}

/**
 * Every signature must be by a signer of the account, for this network, and together they must reach the network's
 * thresholds: LOW for the transaction and MEDIUM for invoking a contract. The network stops counting at that point, and
 * rejects unused signatures (txBAD_AUTH_EXTRA).
 * @param asOf the latest ledger when the account was read
 * @throws SponsorRefusal
 */
export function checkSignatures(inner: SignedTransaction, account: AccountAuth, asOf?: number): void {
  const basis = asOf === undefined ? {} : { asOf }
  if (!account.exists) throw sponsorRefused('no-account', basis)
  const { signers, thresholds } = account
  const enough = Math.max(thresholds.low, thresholds.medium)
  const signatures = inner.envelope.signatures.map(({ hint, signature: bytes }) => {
    return { hint: hint.toBytes(), signature: bytes.toBytes() }
  })
  const { weight, allValid, repeats } = weighSignatures({ hash: inner.hash, signatures, signers })
  if (!allValid) throw sponsorRefused('bad-signature', basis)
  if (weight < enough) throw sponsorRefused('too-little-weight', basis)
  if (repeats > 0) throw sponsorRefused('extra-signature', basis)
  const withoutLast = weighSignatures({ hash: inner.hash, signatures: signatures.slice(0, -1), signers })
  if (signatures.length > 1 && withoutLast.weight >= enough) throw sponsorRefused('extra-signature', basis)
}
