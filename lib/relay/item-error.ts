import type { ChannelProblem } from '#drizzle/schema/relay.ts'

/** Every reason for which an item, or one of its channel's own calls, cannot proceed. */
type ItemErrorCode =
  /** another worker took the item, or it ended */
  | 'item-gone'
  /** a channel that has moved may have paid the item: it waits for the channel's release */
  | 'item-suspended'
  /** the amount is sealed to another relay's key */
  | 'amount-sealed'
  /** no channel could pay the item: the message says why */
  | 'unpayable'
  /** the channel has a problem, named by `problem` */
  | 'channel-unfit'
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

/** Errors of failed items that the dashboard has a remedy for. */
export const ITEM_FAILURES = {
  shortOnEveryChannel: 'no channel has enough to pay it',
  recipientUnregistered: 'the recipient is not registered',
  failedTooOften: 'its transfer failed on the ledger too often',
} as const

export class ItemError extends Error {
  readonly code: ItemErrorCode
  /** set for `channel-unfit` */
  readonly problem: ChannelProblem | undefined
  /** whether it rests on a response of the RPC that may come from a lagging node */
  readonly isDoubtful: boolean

  constructor(
    code: ItemErrorCode,
    message: string,
    options: { cause?: unknown; problem?: ChannelProblem; isDoubtful?: boolean } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'ItemError'
    this.code = code
    this.problem = options.problem
    this.isDoubtful = options.isDoubtful ?? false
  }
}

export const isItemError = (error: unknown, code: ItemErrorCode): error is ItemError =>
  error instanceof ItemError && error.code === code
