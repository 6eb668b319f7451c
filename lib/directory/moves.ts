import type { BatchStatus, PayoutStatus } from '#drizzle/schema/directory.ts'

/** From each status of a batch, the statuses that it may go to. */
export const BATCH_MOVES = {
  draft: ['ready'],
  ready: ['started'],
  started: ['completed', 'failed'],
  // A payout is sent again.
  failed: ['started'],
  completed: [],
} as const satisfies Record<BatchStatus, readonly BatchStatus[]>

/** From each status of a payout, the statuses that it may go to. */
export const PAYOUT_MOVES = {
  draft: ['ready', 'canceled'],
  ready: ['pending', 'canceled'],
  // Only the employer ends a payout whose transfer is `unknown`.
  pending: ['paid', 'failed', 'canceled'],
  // A payout is sent again.
  failed: ['pending', 'canceled'],
  paid: [],
  canceled: [],
} as const satisfies Record<PayoutStatus, readonly PayoutStatus[]>
