/** Why a run does not start, or does not pay everyone. */
export type RunErrorCode =
  /** the list of amounts does not match the contractors or the batch */
  | 'list-differs'
  /** no channel of the relay is available to this account now */
  | 'no-channel'
  /** a seal or delegation is missing, or kept changing while the run was prepared */
  | 'not-started'
  /** some payouts failed: run the batch again to pay them */
  | 'payouts-failed'

export class RunError extends Error {
  readonly code: RunErrorCode

  constructor(code: RunErrorCode, message: string) {
    super(message)
    this.name = 'RunError'
    this.code = code
  }
}
