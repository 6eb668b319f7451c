/** Why a run does not start, or does not pay everyone. */
export type RunErrorCode =
  /** the list of amounts does not match the contractors, the batch or the employer's notes */
  | 'list-differs'
  /** the list names payees by id or email whose addresses only the API has */
  | 'payee-unverified'
  /** the ledger or the notes show the payout as paid */
  | 'already-paid'
  /** the account has paid a payee for a purpose that is not known: it may have been this payout */
  | 'payment-unknown'
  /** the service asks for a delegation that lasts too long, or its view of the ledger is another */
  | 'terms-absurd'
  /** no channel of the relay is available to this account now */
  | 'no-channel'
  /** a channel has a delegation for another run of the account */
  | 'channel-busy'
  /** a seal or delegation is missing, or kept changing while the run was prepared */
  | 'not-started'
  /** the signers so far have too little weight: others have to approve the run (`approveRun`) */
  | 'approval-needed'
  /** the run ended before everything was paid; `reason` is its code */
  | 'run-failed'
  /** some payouts failed: run the batch again to pay them */
  | 'payouts-failed'
  /** the service says that payouts are paid, and the ledger does not show it */
  | 'not-on-ledger'

export class RunError extends Error {
  readonly code: RunErrorCode
  /** the code of the run, such as `restored`, or of its first line that was not paid, such as `delegation-revoked` */
  readonly reason: string | undefined

  constructor(code: RunErrorCode, message: string, reason?: string) {
    super(message)
    this.name = 'RunError'
    this.code = code
    this.reason = reason
  }
}
