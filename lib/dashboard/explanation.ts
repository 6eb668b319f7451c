import type { TransferStatus } from '#drizzle/schema/transfers.ts'
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

/** Explains a transfer's status; empty if there is nothing to explain. */
export function explainTransfer(transfer: {
  status: TransferStatus
  resultCode: string | null
  contractError: number | null
  /** the code with which the network rejected the envelope */
  refusalCode: string | null
}): string {
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

/** How the employer has to resend a failed transfer; empty if any way will do. */
export function adviseOn({ contractError }: { contractError: number | null }): string {
  return contractError === STALE_PROOF ? ', with a new proof for each' : ''
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
