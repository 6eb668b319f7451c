import { type AccountAuth, type HintedSignature, weighSignatures } from '#lib/stellar/account.ts'
import type { InnerTransaction } from './inner-transaction.ts'
import { sponsorRefused } from './refusal-reason.ts'

/**
 * Every signature must be a signer's of the account, on this network, and together they must reach what the network
 * asks for: LOW for the transaction and MEDIUM for invoking a contract. It stops counting there, and refuses what is
 * left over (txBAD_AUTH_EXTRA).
 * @param asOf the ledger of the answer that the account is from
 * @throws SponsorRefusal
 */
export function checkSignatures(inner: InnerTransaction, account: AccountAuth, asOf?: number): void {
  const found = asOf === undefined ? {} : { asOf }
  if (!account.exists) throw sponsorRefused('no-account', found)
  const { signers, thresholds } = account
  const enough = Math.max(thresholds.low, thresholds.medium)
  const signatures = signaturesOf(inner)
  const { weight, allValid } = weighSignatures({ hash: inner.hash, signatures, signers })
  if (!allValid) throw sponsorRefused('bad-signature', found)
  if (weight < enough) throw sponsorRefused('too-little-weight', found)
  const withoutLast = weighSignatures({ hash: inner.hash, signatures: signatures.slice(0, -1), signers })
  if (signatures.length > 1 && withoutLast.weight >= enough) throw sponsorRefused('extra-signature', found)
}

function signaturesOf(inner: InnerTransaction): HintedSignature[] {
  return inner.envelope.signatures.map(({ hint, signature }) => ({
    hint: hint.toBytes(),
    signature: signature.toBytes(),
  }))
}
