import type { PayrollClient } from '#lib/sdk/payroll-client.ts'
import type { RelayDocument } from '#lib/wallet/deployment.ts'
import type { Holder } from '#lib/wallet/keys.ts'
import type { OwnSeals } from './own-seals.ts'
import type { TestNetwork } from './participants.ts'
import type { Payee } from './payees.ts'

/** A run that the employer wants: everything but the state, which is the service's, the ledger's and the file's. */
export interface RunRequest {
  network: TestNetwork
  client: PayrollClient
  holder: Holder
  /** the relay that the employer trusts */
  relay: RelayDocument | undefined
  batch: string
  payees: readonly Payee[]
  seals: OwnSeals
  /** how many channels to divide the run among */
  channels: number
  /** whether to revoke what is left in the end */
  revokes: boolean
  say(line: string): void
}

/** A payout that is to be paid, and the channel and seal that it has. */
export interface Line {
  payout: string
  contractor: string
  address: string
  channel: string
  amount: bigint
  encryptedAmount: string
}
