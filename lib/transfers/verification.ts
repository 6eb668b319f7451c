import type { Database } from '#lib/db/connection.ts'
import { type RefusalReason, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import {
  type AccountAuth,
  type AccountReading,
  authOf,
  type HintedSignature,
  weighSignatures,
} from '#lib/stellar/account.ts'
import { isLagging } from '#lib/stellar/network.ts'
import { lookUp } from '#lib/stellar/transaction.ts'
import type { LedgerRecord } from './decide.ts'
import type { InnerTransaction } from './fee-bump.ts'
import { ASKED_AGAIN, readRecord } from './look-up.ts'
import { checkTimeBounds, type Intent } from './policy.ts'
import { lastLedgerOf } from './rows.ts'
import { checkResourceFee, checkResources, simulate } from './simulation.ts'
import type { Sponsor } from './sponsor.ts'

/** The ledgers in which the network showed that nothing stands against a transfer. */
export interface Verified {
  /** the lowest ledger of the answers: in it, the sequence number was not used yet */
  recordedLedger: number
  /** the ledger of the simulation */
  latestLedger: number
}

/**
 * Checks time, account and simulation. Each of these refusals may merely mean that the transaction stands on the ledger
 * already, so the caller looks the transaction up before it passes a refusal on.
 * @throws SponsorRefusal; LedgerError `unavailable`
 */
export async function verify(sponsor: Sponsor, inner: InnerTransaction, intent: Intent): Promise<Verified> {
  checkTimeBounds(intent, Math.floor(sponsor.now().getTime() / 1000))
  const reading = await sponsor.submission.readAccount(inner.source)
  checkPayer(inner, reading)
  const { resources, minResourceFee, latestLedger } = await simulate(sponsor.network, inner)
  checkResources(intent.resources, resources)
  checkResourceFee({ fee: intent.resourceFee, resources: intent.resources }, { fee: minResourceFee, resources })
  return { recordedLedger: Math.min(reading.latestLedger, latestLedger), latestLedger }
}

/**
 * The payer's own account is read each time, though its master key may have signed: that key can have lost its weight,
 * and simulation checks no sequence number. What the network refuses at submission costs nothing, but every such
 * transfer holds its bid until it has expired, and enough of them hold the whole budget.
 * @throws SponsorRefusal
 */
export function checkPayer(inner: InnerTransaction, { account, latestLedger }: AccountReading): void {
  checkSignatures(inner, account ? authOf(inner.source, account) : { exists: false }, latestLedger)
  if (account && inner.envelope.tx.seqNum !== account.seqNum + 1n) {
    throw sponsorRefused('sequence', { asOf: latestLedger })
  }
}

/**
 * Every signature must be a signer's of the account, on this network, and together they must reach what the network
 * asks for: LOW for the transaction and MEDIUM for invoking a contract. The network stops counting there, and refuses
 * signatures that are left over (txBAD_AUTH_EXTRA).
 * @param asOf the ledger of the answer that the account is from
 * @throws SponsorRefusal
 */
export function checkSignatures(inner: InnerTransaction, account: AccountAuth, asOf?: number): void {
  const found = asOf === undefined ? {} : { asOf }
  if (!account.exists) throw sponsorRefused('no-account', found)
  const { signers, thresholds } = account
  const enough = Math.max(thresholds.low, thresholds.medium)
  const signatures = signaturesOf(inner)
  const { weight, allValid, repeats } = weighSignatures({ hash: inner.hash, signatures, signers })
  if (!allValid) throw sponsorRefused('bad-signature', found)
  if (weight < enough) throw sponsorRefused('too-little-weight', found)
  if (repeats > 0) throw sponsorRefused('extra-signature', found)
  const withoutLast = weighSignatures({ hash: inner.hash, signatures: signatures.slice(0, -1), signers })
  if (signatures.length > 1 && withoutLast.weight >= enough) throw sponsorRefused('extra-signature', found)
}

function signaturesOf(inner: InnerTransaction): HintedSignature[] {
  return inner.envelope.signatures.map(({ hint, signature }) => ({
    hint: hint.toBytes(),
    signature: signature.toBytes(),
  }))
}

/** The refusals that time, account and simulation give: a moment later they may no longer hold. */
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
])

export const isOfTheMoment = (reason: RefusalReason): boolean => OF_THE_MOMENT.has(reason)

/**
 * An RPC whose latest ledger closed longer ago (seconds) calls itself unhealthy: it may know nothing of the present.
 */
export const MOST_SILENT = 30

/**
 * Looks up a transaction that its client may have sent by itself. `absent`: it is no success up to ledger `asOf`, on
 * which a refusal rests. `unsure`: no answer was late enough to tell, as after all nodes were restored from a backup,
 * and to refuse would call for a second payment.
 * @throws LedgerError `unavailable`
 */
export async function findApplied(
  { network, keypair, now }: Sponsor,
  { hashHex: innerHash }: InnerTransaction,
  asOf: number,
): Promise<LedgerRecord | 'absent' | 'unsure'> {
  const expected = { innerHash, sponsor: keypair.publicKey(), passphrase: network.passphrase }
  for (let asked = 1; asked <= ASKED_AGAIN; asked += 1) {
    const found = await lookUp(network, innerHash)
    if (found.status !== 'NOT_FOUND') {
      const record = readRecord(found, expected)
      return record.succeeded ? record : 'absent'
    }
    const isPresent = found.latestLedgerCloseTime >= now().getTime() / 1000 - MOST_SILENT
    if (isPresent && found.latestLedger >= asOf) return 'absent'
  }
  return 'unsure'
}

/** True if an answer as of `ledger` is older than the last transfer of the account that is known to stand there. */
export async function isBehind(db: Database, account: string, ledger: number): Promise<boolean> {
  return isLagging(ledger, await lastLedgerOf(db, account))
}
