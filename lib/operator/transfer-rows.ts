import { eq } from 'drizzle-orm'
import { payouts } from '#drizzle/schema/directory.ts'
import { sponsoredTransfers, type TransferStatus } from '#drizzle/schema/transfers.ts'

/** The table of transfers, and what its statuses mean on the dashboard. No other file of the dashboard knows either. */
export const transferRows = sponsoredTransfers

/** How a transfer stands, in the words of the dashboard. */
export type TransferState = 'open' | 'succeeded' | 'failed' | 'expired'

const STATES = {
  held: 'open',
  sent: 'open',
  success: 'succeeded',
  failed: 'failed',
  dead: 'expired',
} as const satisfies Record<TransferStatus, TransferState>

export const stateOf = (status: TransferStatus): TransferState => STATES[status]

/** The statuses of the transfers that can be asked for at once. What expired has failed, in every place. */
export const TRANSFER_VIEWS = {
  open: ['held', 'sent'],
  succeeded: ['success'],
  failed: ['failed', 'dead'],
} as const satisfies Record<string, readonly TransferStatus[]>
export type TransferView = keyof typeof TRANSFER_VIEWS

/** The condition that a transfer is the one that last claimed a payout. */
export const paysPayout = eq(payouts.transfer, transferRows.innerHash)

/** What tells why a transfer is where it is. */
export const outcomeOf = {
  status: transferRows.status,
  resultCode: transferRows.resultCode,
  contractError: transferRows.contractError,
}
