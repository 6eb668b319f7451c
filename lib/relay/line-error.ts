import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import { FAILED_TOO_OFTEN } from '#lib/transfers/line.ts'

/** Every reason for which a line, or one of a channel's own calls, cannot proceed. */
type LineErrorCode =
  /** it has ended, or another transfer pays it */
  | 'line-gone'
  /** a channel that has moved may have paid the line: it waits for the channel's release */
  | 'line-suspended'
  /** the amount is sealed to another relay's key */
  | 'amount-sealed'
  /** no channel could pay the line: the message says why */
  | 'unpayable'
  /** the channel has a problem, named by `problem` */
  | 'channel-unfit'
  /** an operator has paused the channel */
  | 'channel-paused'
  | 'balance-short'
  /** the RPC and the database disagree about the channel's balance */
  | 'balance-stale'
  /** the channel's sequence number was not compared with the ledger's yet */
  | 'not-adopted'
  /** a ledger may still accept a new call */
  | 'call-expired'
  /** the network or the contract rejected the call */
  | 'call-failed'
  | 'ledger-stalled'
  | 'relay-closing'
  /** the payout of a run was canceled, or another transfer paid it */
  | 'payout-gone'
  /** another transfer may pay the payout of a run: its outcome is awaited */
  | 'payout-busy'
  | RunErrorCode

/** Why a payout of a run fails. The payout's error is the code. */
export type RunErrorCode =
  /** the rows are not those that the employer has signed: the payout stays as it is */
  | 'manifest-invalid'
  | 'seal-invalid'
  | 'allowance-short'
  | 'delegation-ended'
  | 'delegation-revoked'
  | 'recipient-unregistered'
  | 'account-frozen'

/** Errors of failed lines that the dashboard has a remedy for. */
export const LINE_FAILURES = {
  shortOnEveryChannel: 'no channel has enough to pay it',
  recipientUnregistered: 'the recipient is not registered',
  failedTooOften: FAILED_TOO_OFTEN,
} as const

export class LineError extends Error {
  readonly code: LineErrorCode
  /** set for `channel-unfit` */
  readonly problem: ChannelProblem | undefined
  /** whether it rests on a response of the RPC that may come from a lagging node */
  readonly isDoubtful: boolean

  constructor(
    code: LineErrorCode,
    message: string,
    options: { cause?: unknown; problem?: ChannelProblem; isDoubtful?: boolean } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'LineError'
    this.code = code
    this.problem = options.problem
    this.isDoubtful = options.isDoubtful ?? false
  }
}

export const isLineError = (error: unknown, code: LineErrorCode): error is LineError =>
  error instanceof LineError && error.code === code
