import type { TransferStatus } from '#drizzle/schema/transfers.ts'
import { STALE_PROOF } from '#lib/stellar/confidential-token.ts'

/** The meaning, for an operator, of the errors of the confidential token that a transfer may meet (interface 0.8.0). */
const CONTRACT_ERRORS: Record<number, string> = {
  3501: 'sender or recipient is not registered',
  [STALE_PROOF]: 'the proof does not fit the sender’s balance',
  3507: 'the data of the call is malformed',
  3514: 'a point or a field of the call is not canonical',
}

const RESULT_CODES: Record<string, string> = {
  txFailed: 'the call ran out of what it had declared, or failed without a contract error',
  txBadSeq: 'the sequence number is not the next one: another transaction of the account was first',
  txBadAuth: 'a signature does not hold on the ledger',
  txInsufficientFee: 'the network asked for a higher fee',
  txInsufficientBalance: 'an account could not pay',
  txTooLate: 'it came after its maxTime',
  txSorobanInvalid: 'the declared resources are not valid',
}

/** Why a transfer is where it is, in words; empty where there is nothing to explain. */
export function explainTransfer(transfer: {
  status: TransferStatus
  resultCode: string | null
  contractError: number | null
  /** the code with which the network refused to take it */
  refusalCode: string | null
  /** long before its maxTime: its sequence number was used by something else */
  endedEarly: boolean
}): string {
  const { status, resultCode, contractError, refusalCode, endedEarly } = transfer
  if (status === 'succeeded' || status === 'open') return ''
  if (status === 'expired') {
    const why = refusalCode === null ? '' : `the network refused it: ${inWords(refusalCode)}; `
    return endedEarly
      ? `${why}another transaction of the account used its sequence number, and nothing was paid`
      : `${why}it expired before it reached the ledger, and nothing was paid`
  }
  if (status === 'unknown') return 'no history is left that tells whether it was paid'
  return explainResult({ resultCode, contractError })
}

/** The employer's remedy for a transfer that failed, beyond sending it again; empty if there is none. */
export function adviseOn({ contractError }: { contractError: number | null }): string {
  if (contractError !== STALE_PROOF) return ''
  return ', with a new proof for each. Should that fail in the same way, the application makes wrong proofs, and only its developer can mend that'
}

/** The meaning of the ledger's own words for a failure; empty if it gave none. */
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
