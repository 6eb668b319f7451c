import type { ChannelProblem } from '#drizzle/schema/relay.ts'

/** Every reason for which an item, or one of its channel's own calls, cannot proceed. */
export type ItemErrorCode =
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
  /** a ledger may still accept a new call */
  | 'call-expired'
  /** the network or the contract rejected the call */
  | 'call-failed'
  | 'ledger-stalled'
  | 'relay-closing'

export class ItemError extends Error {
  readonly code: ItemErrorCode
  /** set for `channel-unfit` */
  readonly problem: ChannelProblem | undefined

  constructor(code: ItemErrorCode, message: string, options: { cause?: unknown; problem?: ChannelProblem } = {}) {
    super(message, { cause: options.cause })
    this.name = 'ItemError'
    this.code = code
    this.problem = options.problem
  }
}

export const isItemError = (error: unknown, code: ItemErrorCode): error is ItemError =>
  error instanceof ItemError && error.code === code
