import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import type { RunErrorCode } from '#lib/relay/item-error.ts'
import { STALE_PROOF } from '#lib/stellar/confidential-token.ts'

/** The confidential token's errors that a transfer can cause (interface 0.8.0), explained for an operator. */
const CONTRACT_ERRORS: Record<number, string> = {
  3501: 'sender or recipient is not registered',
  [STALE_PROOF]: 'the proof does not match the sender’s balance',
  3507: 'the data of the call is malformed',
  3514: 'a point or a field of the call is not canonical',
}

const RESULT_CODES: Record<string, string> = {
  txFailed: 'the call exceeded its declared resources, or failed without a contract error',
  txBadSeq: 'the sequence number is not the next one: another transaction of the account was applied first',
  txBadAuth: 'a signature is not valid on the ledger',
  txInsufficientFee: 'the network required a higher fee',
  txInsufficientBalance: 'an account’s balance is too low',
  txTooLate: 'it was submitted after its maxTime',
  txSorobanInvalid: 'the declared resources are invalid',
}

const NEW_DELEGATION = ' in a run with a new delegation'

/** Why a run could not pay a payout (docs/runs.md, "How a payout ends"), and how to send the payout again. */
const RUN_ERRORS: Record<RunErrorCode, { meaning: string; advice: string }> = {
  'manifest-invalid': {
    meaning: 'the payout, the delegation or the signature is not what the employer has signed',
    advice: NEW_DELEGATION,
  },
  'seal-invalid': { meaning: 'the relay cannot open the sealed amount', advice: NEW_DELEGATION },
  'allowance-short': { meaning: 'the escrow does not cover the payouts of its channel', advice: NEW_DELEGATION },
  'delegation-ended': { meaning: 'the delegation would have ended before the payment', advice: NEW_DELEGATION },
  'delegation-revoked': { meaning: 'the delegation no longer exists', advice: NEW_DELEGATION },
  'recipient-unregistered': {
    meaning: 'the contractor’s account is not registered with the token',
    advice: ' after the contractor has registered with the token',
  },
  'account-frozen': {
    meaning: 'the token refuses payments of the employer or to the contractor',
    advice: ' after the token’s operator has unfrozen the account',
  },
}

interface Outcome {
  status: TransferStatus
  resultCode: string | null
  contractError: number | null
  /** the code with which the network rejected the envelope */
  refusalCode: string | null
}

const isRunError = (error: string | null): error is RunErrorCode => error !== null && Object.hasOwn(RUN_ERRORS, error)

/** Explains why a payout failed, by its error or by its last transfer; empty if neither has an explanation. */
export function explainPayout({ error, outcome }: { error: string | null; outcome: Outcome | null }): string {
  if (isRunError(error)) return `${RUN_ERRORS[error].meaning} (${error})`
  return outcome ? explainTransfer(outcome) : ''
}

/** Explains a transfer's status; empty if there is nothing to explain. */
export function explainTransfer(transfer: Outcome): string {
  const { status, resultCode, contractError, refusalCode } = transfer
  if (status === 'succeeded' || status === 'open') return ''
  if (status === 'expired') {
    const why = refusalCode === null ? '' : `the network refused it: ${inWords(refusalCode)}; `
    return resultCode === null
      ? `${why}it expired before a ledger included it, and nothing was paid`
      : `${why}another transaction of the account, unknown to this service, used its sequence number: check whether it paid`
  }
  if (status === 'unknown') return 'the RPC no longer has the history that shows whether it was paid'
  return explainResult({ resultCode, contractError })
}

/** How the employer has to send a failed payout again; empty if any way will do. */
export function adviseOn({ error, outcome }: { error: string | null; outcome: Outcome | null }): string {
  if (isRunError(error)) return RUN_ERRORS[error].advice
  return outcome?.contractError === STALE_PROOF ? ', with a new proof for each' : ''
}

/** Explains a result or contract error; empty without either. */
export function explainResult({
  resultCode,
  contractError,
}: {
  resultCode: string | null
  contractError: number | null
}): string {
  if (contractError !== null) {
    const words = CONTRACT_ERRORS[contractError]
    return words ? `${words} (contract error ${contractError})` : `contract error ${contractError}`
  }
  return resultCode === null ? '' : inWords(resultCode)
}

function inWords(resultCode: string): string {
  const words = RESULT_CODES[resultCode]
  return words ? `${words} (${resultCode})` : resultCode
}
