import { SPONSOR_REASONS } from '#lib/refusal/refusal.ts'
import { type RefusalReason, sponsorRefused } from '#lib/refusal/sponsor-refusal.ts'

/** Why a line was not paid, and why a payout of a run failed: the codes that are stored, with their meaning. */
export const LINE_ERRORS = {
  /** the rows differ from what the employer has signed: the payout keeps its status */
  'manifest-invalid': 'the payout, the delegation or the signature is not what the employer has signed',
  'seal-invalid': 'the relay cannot open the sealed amount',
  'allowance-short': 'the escrow does not cover the payouts of its channel',
  'delegation-ended': 'the delegation would have ended before the payment',
  'delegation-revoked': 'the delegation no longer exists',
  'recipient-unregistered': 'the recipient’s account is not registered with the token',
  'account-frozen': 'the token refuses payments of the employer or to the recipient',
  'employer-paid': 'the employer’s account has paid the recipient itself since the batch was created',
  'no-other-channel': 'there is no other channel to pay',
  'channels-short': 'no channel has enough to pay it',
  'would-fail': 'the transfer would fail',
  'failed-too-often': 'its transfer failed on the ledger too often',
  'too-late': 'no relay could pay it within a day',
  restored: 'its run was ended after a restore: the employer starts it again',
  'history-lost': 'the ledger’s history no longer shows whether it was paid',
} as const satisfies Record<string, string>

/** A code of LINE_ERRORS, a number of the contract's errors, or the reason of a refusal by the sponsor. */
export type LineErrorCode = keyof typeof LINE_ERRORS | `${typeof CONTRACT_ERROR}${number}` | RefusalReason

const CONTRACT_ERROR = 'contract-error-'

/** The code of a payment that the contract would refuse with this number. */
export const contractErrorCode = (number: number): LineErrorCode => `${CONTRACT_ERROR}${number}`

/** The number of the contract's error in a code, if it has one. */
export const contractErrorOf = (code: string): number | undefined =>
  code.startsWith(CONTRACT_ERROR) ? Number(code.slice(CONTRACT_ERROR.length)) : undefined

/** Whether a payout's error is the code of a line, and not the text of its last transfer. */
export const isLineErrorCode = (error: string): error is LineErrorCode =>
  Object.hasOwn(LINE_ERRORS, error) || isRefusalReason(error) || contractErrorOf(error) !== undefined

const isRefusalReason = (code: string): code is RefusalReason => Object.hasOwn(SPONSOR_REASONS, code)

/** A code in words. */
export function describeLineError(code: string): string {
  const contractError = contractErrorOf(code)
  if (contractError !== undefined) return `${LINE_ERRORS['would-fail']}: contract error ${contractError}`
  const words: Record<string, string> = LINE_ERRORS
  // Before the refusals: `would-fail` is one, too, which ends no line.
  return words[code] ?? (isRefusalReason(code) ? sponsorRefused(code).message : code)
}
