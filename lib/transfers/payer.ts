import { sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'
import { type AccountAuth, type AccountReading, authOf } from '#lib/stellar/account.ts'
import type { SignedTransaction } from '#lib/stellar/node/envelope.ts'
import { weighSignatures } from '#lib/stellar/node/signature-weight.ts'

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
  const signatures = inner.envelope.signatures.map(({ hint, signature }) => ({
    hint: hint.toBytes(),
    signature: signature.toBytes(),
  }))
  const { weight, allValid, repeats } = weighSignatures({ hash: inner.hash, signatures, signers })
  if (!allValid) throw sponsorRefused('bad-signature', basis)
  if (weight < enough) throw sponsorRefused('too-little-weight', basis)
  if (repeats > 0) throw sponsorRefused('extra-signature', basis)
  const withoutLast = weighSignatures({ hash: inner.hash, signatures: signatures.slice(0, -1), signers })
  if (signatures.length > 1 && withoutLast.weight >= enough) throw sponsorRefused('extra-signature', basis)
}
