import { StrKey } from '@stellar/stellar-sdk'
import { type AccountAuth, type HintedSignature, weighSignatures } from '#lib/ledger/account.ts'
import { verifyEd25519 } from '#lib/ledger/ed25519.ts'
import type { InnerTransaction } from './inner-transaction.ts'
import { sponsorRefused } from './refusal-reason.ts'

function signaturesOf(inner: InnerTransaction): HintedSignature[] {
  return inner.envelope.signatures.map(({ hint, signature }) => ({
    hint: hint.toBytes(),
    signature: signature.toBytes(),
  }))
}

/**
 * Whether the one signature is the account's own master key's. Then its entry need not be read: if that key has lost
 * its weight, the network refuses the transaction at the door, and nothing is paid.
 */
export function isSignedByMasterAlone(inner: InnerTransaction): boolean {
  const [only, ...others] = signaturesOf(inner)
  if (!only || others.length > 0) return false
  const key = StrKey.decodeEd25519PublicKey(inner.source)
  return Buffer.from(key.subarray(28)).equals(only.hint) && verifyEd25519(key, inner.hash, only.signature)
}

/**
 * Every signature must be a signer's of the account, on this network, and together they must reach MEDIUM, which is
 * what invoking a contract takes.
 * @throws SponsorRefusal
 */
export function checkSignatures(inner: InnerTransaction, account: AccountAuth): void {
  if (!account.exists) throw sponsorRefused('no-account')
  const signatures = signaturesOf(inner)
  const { weight, allValid } = weighSignatures({ hash: inner.hash, signatures, signers: account.signers })
  if (!allValid) throw sponsorRefused('bad-signature')
  if (weight < account.thresholds.medium) throw sponsorRefused('too-little-weight')
}
