import type { RelayDocument } from '#lib/wallet/deployment.ts'
import type { BatchRequest } from './batch-request.ts'

/** A batch that the relay is to pay. */
export interface RunRequest extends BatchRequest {
  /** the relay that the employer trusts, such as the deployment document's */
  relay: RelayDocument | undefined
  /** how many channels to divide the run among */
  channels: number
  /** whether to revoke the rest in the end */
  revokes: boolean
  /** how many ledgers a delegation may last; by default twice what its payouts take, and a day */
  maxLedgers?: number | undefined
}

/** A payout to be paid, with its channel and seal. */
export interface Line {
  payout: string
  contractor: string
  address: string
  channel: string
  amount: bigint
  encryptedAmount: string
}
