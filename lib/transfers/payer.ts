import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import {
  type AccountAuth,
  type AccountReading,
  authOf,
  type HintedSignature,
  weighSignatures,
} from '#lib/stellar/account.ts'
import type { SignedTransaction } from '#lib/stellar/envelope.ts'

/**
 * The payer's own account is read each time, though its master key may have signed: that key can have lost its weight,
 * and simulation checks no sequence number. What the network refuses at submission costs nothing, but every such
 * transfer holds its bid until it has expired, and enough of them hold the whole budget.
 * @throws SponsorRefusal
 */
export function checkPayer(inner: SignedTransaction, { account, latestLedger }: AccountReading): void {
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
export function checkSignatures(inner: SignedTransaction, account: AccountAuth, asOf?: number): void {
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

function signaturesOf(inner: SignedTransaction): HintedSignature[] {
  return inner.envelope.signatures.map(({ hint, signature }) => ({
    hint: hint.toBytes(),
    signature: signature.toBytes(),
  }))
}
