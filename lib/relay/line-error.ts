import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import type { LineErrorCode } from '#lib/transfers/line-error.ts'

/** Every reason why a line, or one of a channel's own calls, cannot proceed. A reason that ends a line is stored in its row. */
type Code =
  /** it has ended, or another transfer pays it */
  | 'line-gone'
  /** payments are stopped until every channel is reconciled with the ledger */
  | 'payments-stopped'
  /** the ledger shows transactions of the channel that this database does not have */
  | 'channel-moved'
  /** the amount is sealed to another relay's key */
  | 'amount-sealed'
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
  | LineErrorCode

export class LineError extends Error {
  readonly code: Code
  /** set for `channel-unfit` */
  readonly problem: ChannelProblem | undefined
  /** whether it rests on a response of the RPC that may come from a lagging node */
  readonly isDoubtful: boolean

  constructor(
    code: Code,
    message: string,
    options: ErrorOptions & Partial<Pick<LineError, 'problem' | 'isDoubtful'>> = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'LineError'
    this.code = code
    this.problem = options.problem
    this.isDoubtful = options.isDoubtful ?? false
  }
}

export const isLineError = (error: unknown, code: Code): error is LineError =>
  error instanceof LineError && error.code === code
