import type { ChannelProblem } from '#drizzle/schema/relay.ts'
import type { LineErrorCode } from '#lib/transfers/line-error.ts'

/** The reasons why a line, or one of a channel's own calls, cannot proceed for now, and what a host does about each (answer.ts). */
export const PASSING = {
  /** it has ended, or another transfer pays it */
  'line-gone': 'leave',
  /** payments are stopped until every channel is reconciled with the ledger */
  'payments-stopped': 'leave',
  /** an operator has paused the channel */
  'channel-paused': 'leave',
  /** the ledger shows transactions of the channel that this database does not have */
  'channel-moved': 'stop-payments',
  /** the channel has a problem, named by `problem` */
  'channel-unfit': 'note-problem',
  'balance-short': 'pass-on',
  /** the RPC and the database disagree about the channel's balance */
  'balance-stale': 'read-balance',
  /** the amount is sealed to another relay's key */
  'amount-sealed': 'wait-for-key',
  /** the payout of a run was canceled, or another transfer paid it */
  'payout-gone': 'cancel',
  /** another transfer may pay the payout of a run: its outcome is awaited */
  'payout-busy': 'wait',
  /** a ledger may still accept a new call */
  'call-expired': 'again',
  /** the network or the contract rejected the call */
  'call-failed': 'again',
  'ledger-stalled': 'again',
  /** the channel's sequence number was not compared with the ledger's yet */
  'not-adopted': 'again',
  'relay-closing': 'again',
} as const

/** The others end a line, and are stored in its row. */
type Code = keyof typeof PASSING | LineErrorCode

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
