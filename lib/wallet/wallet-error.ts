import { CodedError } from '#lib/text/coded-error.ts'

export { LedgerError, type LedgerErrorCode } from '#lib/stellar/ledger-error.ts'

/** Why the wallet refuses an operation. */
export type WalletErrorCode =
  /** an amount, key, point or call argument is out of range or badly encoded */
  | 'malformed'
  /** the account of the signer does not exist on the network */
  | 'no-account'
  /** an account is not registered with the token */
  | 'not-registered'
  /** the account is registered with the token already: its keys cannot be changed */
  | 'already-registered'
  /** the account is registered with other confidential keys */
  | 'other-keys'
  /** the opening no longer matches the ledger: synchronise and try again */
  | 'balance-changed'
  /** the confidential balance is less than the amount */
  | 'balance-too-low'
  /** no circuit accepts the opening's blinding: receive a confidential transfer and merge it */
  | 'unspendable'
  /** the events don't add up to the account's balance */
  | 'history-incomplete'
  /** an archive is unreachable, or its response is invalid: nothing is read without it */
  | 'archive-unavailable'
  /** a deployment document is unreadable or invalid */
  | 'deployment-invalid'
  /** the user or the wallet refused to sign */
  | 'signer-refused'
  /** the signer derives other keys each time, so the registered ones would be lost: nothing is registered */
  | 'signer-not-deterministic'
  /** a sign-in challenge is of another service than the configured one, or more than a challenge: it is not signed */
  | 'challenge-invalid'
  /** a signer returned a signature of another account, or of something else */
  | 'signature-invalid'
  /** a relay's key or channel is not in the document that the user trusts */
  | 'relay-unknown'
  /** a call was submitted, and the ledger does not show it */
  | 'not-applied'
  /** the simulation failed; see `contractError` */
  | 'would-fail'
  /** the RPC asks for a resource fee above `maxResourceFee`: nothing is signed */
  | 'fee-too-high'

interface WalletErrorOptions extends ErrorOptions {
  contractError?: number | undefined
  needed?: bigint
  available?: bigint
}

export class WalletError extends CodedError<WalletErrorCode> {
  static override readonly className = 'WalletError'
  /** Number of the contract's error, such as 3506 for a proof that is wrong or stale. */
  readonly contractError: number | undefined
  /** Of `balance-too-low`: base units. */
  readonly needed: bigint | undefined
  readonly available: bigint | undefined

  constructor(code: WalletErrorCode, message: string, given: WalletErrorOptions = {}) {
    const { contractError, needed, available, ...options } = given
    super(code, message, options)
    this.contractError = contractError
    this.needed = needed
    this.available = available
  }
}
