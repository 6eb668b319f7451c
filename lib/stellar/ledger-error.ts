import { CodedError } from '#lib/text/coded-error.ts'

/**
 * Why the ledger could not be read. `unavailable`: the RPC or friendbot did not respond, or its response is unusable; a
 * later attempt may succeed. `foreign-contract`: the configured contract is not a confidential token over a Stellar asset.
 */
export type LedgerErrorCode = 'unavailable' | 'foreign-contract'

/** Thrown by everything that reads the ledger. The API answers it with 503 or 501. */
export class LedgerError extends CodedError<LedgerErrorCode> {
  static override readonly className = 'LedgerError'
}

/** The error for a response that is missing or does not match its request. */
export const ledgerUnreachable = (cause?: unknown): LedgerError =>
  new LedgerError('unavailable', 'the ledger cannot be reached', { cause })

/**
 * Awaits a call of the SDK's RPC client, which throws JSON-RPC errors as plain objects.
 * @throws LedgerError `unavailable` if the RPC doesn't respond, or with an error
 */
export function reachLedger<Answer>(call: Promise<Answer>): Promise<Answer> {
  return call.catch((cause: unknown) => {
    throw cause instanceof LedgerError ? cause : ledgerUnreachable(cause)
  })
}
