import { z } from 'zod'
import { CodedError } from '#lib/text/coded-error.ts'
import { onOneLine } from '#lib/text/printable.ts'

/** Why there is no disclosure, or why a bundle does not verify. */
export type DisclosureErrorCode =
  // about the request
  /** the request is malformed, contradicts itself, or contains a secret */
  | 'request-invalid'
  /** the RPC belongs to a different network from the request's */
  | 'other-network'
  // steps of the verifier, in their order
  /** the file isn't a bundle, or its bundles don't match their circuits */
  | 'bundle-invalid'
  /** the request does not accept this circuit */
  | 'unknown-circuit'
  /** the secret key does not belong to the request */
  | 'key-mismatch'
  /** a payment is referenced twice in the file */
  | 'event-repeated'
  /** no source has an event at this position */
  | 'event-not-found'
  /** the RPC no longer has the event, and no archive was named, or a named one may not have its ledger */
  | 'event-out-of-range'
  /** two sources disagree about an event */
  | 'archives-differ'
  /** the event belongs to another contract */
  | 'other-contract'
  /** the event isn't a payment */
  | 'wrong-event'
  /** the event does not name the request's account in the request's role */
  | 'other-account'
  /** the payment's ledger closed outside the request's period */
  | 'outside-period'
  /** a total includes a payment of an account to itself */
  | 'self-payment'
  /** an account of the event, or of the request, has no confidential account */
  | 'not-registered'
  /** the key that the auditor had at that ledger cannot be determined */
  | 'auditor-key-unknown'
  /** the proof does not verify for these public inputs */
  | 'proof-invalid'
  /** the sealed value is out of range */
  | 'cannot-decrypt'
  // about disclosing
  /** the ephemeral secret of a payment cannot be derived again */
  | 'not-disclosable'
  /** no circuit has enough slots for the payments that reach the threshold, or no file enough room for the proofs of a total */
  | 'too-many-payments'
  /** there is nothing to disclose, or the balance or total does not meet the threshold */
  | 'not-true'
  /** the keys do not belong to the account, or to the auditor */
  | 'other-keys'
  /** the owner of a delegation has not signed this disclosure */
  | 'not-authorized'
  // about the evidence of a run
  /** the file isn't the evidence of a run */
  | 'evidence-invalid'
  /** the signatures over the manifest do not reach the threshold that the file names */
  | 'signatures-too-few'
  /** a transaction of the file does not pay the payout that it is named for */
  | 'payment-differs'

export class DisclosureError extends CodedError<DisclosureErrorCode> {
  static override readonly className = 'DisclosureError'
}

/** The longest description of a mismatch, in characters: a file of a megabyte may mismatch in every byte. */
const MAX_REASON = 500

/** Why a file does not match its schema, on one line. */
export function describeMismatch(error: z.ZodError): string {
  const reason = onOneLine(z.prettifyError(error).replaceAll('\n', ' '))
  return reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON)}…` : reason
}
