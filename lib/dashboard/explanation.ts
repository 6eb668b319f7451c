import type { transfers } from '#drizzle/schema/transfers.ts'
import { SPONSOR_REASONS } from '#lib/refusal/refusal.ts'
import { FROZEN_ERRORS, STALE_PROOF } from '#lib/stellar/confidential-token.ts'
import {
  contractErrorOf,
  describeLineError,
  isLineErrorCode,
  LINE_ERRORS,
  type LineErrorCode,
} from '#lib/transfers/line-error.ts'

/** What removes the cause of a failure, and how the payment is then made again. */
export interface Advice {
  /** what the operator does before the employer can pay again, as an imperative */
  first?: string
  /** what the operator does in addition, so that later payments don't fail */
  also?: string
  /** how the employer pays that many again, after 'again'; empty if any way will do */
  again: (count: number) => string
}

/** Why a payment failed, and what removes that. */
export interface Cause {
  /** in words; empty if unknown */
  meaning: string
  advice: Advice
}

const ANY_WAY: Advice = { again: () => '' }
const NO_CAUSE: Cause = { meaning: '', advice: ANY_WAY }
const REGISTERED: Advice = {
  again: (count) => ` after ${count === 1 ? 'the recipient has' : 'the recipients have'} registered with the token`,
}
const BOTH_REGISTERED: Advice = {
  again: (count) =>
    ` after the sender and ${count === 1 ? 'the recipient' : 'the recipients'} have registered with the token`,
}
const NEW_DELEGATION: Advice = { again: () => ' in a run with a new delegation' }
const CORRECTED: Advice = {
  again: () => ' after the developer of the application has corrected it: its calls are malformed',
}
const TOMORROW: Advice = { again: () => ' tomorrow, after the quotas are reset at 00:00 UTC' }
const FROZEN = LINE_ERRORS['account-frozen']
const UNFROZEN: Advice = {
  ...ANY_WAY,
  first: 'Ask the token’s operator whether the employer’s or the recipient’s account is frozen, and to unfreeze it',
}

/** The confidential token's errors that a transfer can cause (interface 0.8.0), explained for an operator. */
const CONTRACT_ERRORS: Record<number, Cause> = {
  3501: { meaning: 'sender or recipient is not registered', advice: BOTH_REGISTERED },
  [STALE_PROOF]: {
    meaning: 'the proof does not match the sender’s balance',
    advice: { again: (count) => ` with a new proof${count === 1 ? '' : ' for each'}` },
  },
  3507: { meaning: 'the data of the call is malformed', advice: CORRECTED },
  3514: { meaning: 'a point or a field of the call is not canonical', advice: CORRECTED },
  ...Object.fromEntries(FROZEN_ERRORS.map((number) => [number, { meaning: FROZEN, advice: UNFROZEN }])),
}

const RESULT_CODES: Record<string, Cause> = {
  txFailed: {
    meaning: 'the call exceeded its declared resources, or failed without a contract error',
    advice: { again: () => ' after a new simulation' },
  },
  txBadSeq: {
    meaning: 'the sequence number is not the next one: another transaction of the account was applied first',
    advice: ANY_WAY,
  },
  txBadAuth: {
    meaning: 'a signature is not valid on the ledger',
    advice: { again: () => ' with the current signers of the paying account' },
  },
  txInsufficientFee: { meaning: 'the network required a higher fee', advice: ANY_WAY },
  txInsufficientBalance: {
    meaning: 'the sponsor’s balance did not cover the fee',
    advice: { ...ANY_WAY, first: 'Send XLM to the sponsor’s address, shown under “Sponsor’s balance”' },
  },
  txTooLate: { meaning: 'it was submitted after its maxTime', advice: ANY_WAY },
  txSorobanInvalid: { meaning: 'the declared resources are invalid', advice: CORRECTED },
}

/** What removes the cause for which a line was not paid, by its code. The others ask for nothing in particular. */
const LINE_ADVICE: Partial<Record<LineErrorCode, Advice>> = {
  'manifest-invalid': NEW_DELEGATION,
  'seal-invalid': NEW_DELEGATION,
  'allowance-short': NEW_DELEGATION,
  'delegation-ended': NEW_DELEGATION,
  'delegation-revoked': NEW_DELEGATION,
  'recipient-unregistered': REGISTERED,
  'account-frozen': UNFROZEN,
  'employer-paid': {
    again: (count) => ` in a new run, or cancel ${count === 1 ? 'it if it was' : 'those that were'} paid already`,
  },
  'quota-transfers': TOMORROW,
  'quota-stroops': TOMORROW,
  'daily-budget': { ...ANY_WAY, first: 'Raise SPONSOR_DAILY_BUDGET for the service and every relay, and restart them' },
  'failed-too-often': { ...ANY_WAY, first: 'Remove the cause for which its transfers failed, shown on the job’s page' },
}

type Outcome = Pick<typeof transfers.$inferSelect, 'status' | 'resultCode' | 'contractError'> & {
  /** the code with which the network rejected the envelope */
  refusalCode: string | null
}

/** Explains why a payout failed, by its error or by its last transfer. */
export function causeOfPayout({ error, outcome }: { error: string | null; outcome: Outcome | null }): Cause {
  if (error !== null && isLineErrorCode(error)) return explainLine(error)
  return outcome ? causeOfTransfer(outcome) : NO_CAUSE
}

/** Explains a transfer's status. */
export function causeOfTransfer({ status, resultCode, contractError, refusalCode }: Outcome): Cause {
  if (status === 'succeeded' || status === 'open') return NO_CAUSE
  if (status === 'unknown')
    return { ...NO_CAUSE, meaning: 'the RPC no longer has the history that shows whether it was paid' }
  // A transfer that was refused at first may have been included later.
  if (status === 'failed') return causeOfResult({ resultCode, contractError })
  const refused = causeOfResult({ resultCode: refusalCode, contractError: null })
  const why = refusalCode === null ? '' : `the network refused it: ${refused.meaning}; `
  const end =
    resultCode === null
      ? 'it expired before a ledger included it, and nothing was paid'
      : 'another transaction of the account, unknown to this service, used its sequence number: check whether it paid'
  return { meaning: `${why}${end}`, advice: refused.advice }
}

/** Explains why a line of a job or run was not paid, by its code. */
export function explainLine(error: string): Cause {
  const contractError = contractErrorOf(error)
  if (contractError !== undefined) return causeOfResult({ resultCode: null, contractError })
  const advice = (isLineErrorCode(error) && LINE_ADVICE[error]) || ANY_WAY
  return { meaning: error === '' ? '' : `${describeLineError(error)} (${error})`, advice }
}

/** Explains a result or a contract error. */
export function causeOfResult({ resultCode, contractError }: Pick<Outcome, 'resultCode' | 'contractError'>): Cause {
  if (contractError !== null) {
    const known = CONTRACT_ERRORS[contractError]
    if (known) return { ...known, meaning: `${known.meaning} (contract error ${contractError})` }
    const first = `Ask the token’s operator what contract error ${contractError} (interface 0.8.0) means, and what removes it`
    return { meaning: `contract error ${contractError}`, advice: { ...ANY_WAY, first } }
  }
  if (resultCode === null) return NO_CAUSE
  const known = RESULT_CODES[resultCode]
  return known ? { ...known, meaning: `${known.meaning} (${resultCode})` } : { ...NO_CAUSE, meaning: resultCode }
}

/** Why the sponsor refused a transfer, or the mail server an invite, by the code in the audit log. */
export function explainRefusal(code: string): string {
  const words: Record<string, string> = { ...SPONSOR_REASONS, ...REFUSAL_WORDS }
  return words[code] ?? code
}

const REFUSAL_WORDS = {
  // Its message for the caller names a time, which the log does not have.
  'another-open': 'another transfer of this account is open',
  'mail-refused': 'the mail server refused the address or the message',
  'mail-unavailable': 'the mail server was not available',
  internal: 'an internal error',
}
