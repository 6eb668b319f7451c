import type { Deployment, RelayDocument } from '#lib/wallet/deployment.ts'
import type { AnyHolder } from '#lib/wallet/keys.ts'
import type { OwnSeals } from './own-seals.ts'
import type { Payee } from './payees.ts'
import type { PayrollClient } from './payroll-client.ts'

/** The run that an employer wants: everything except the state in the service, on the ledger and of the seals. */
export interface RunRequest {
  deployment: Deployment
  client: PayrollClient
  holder: AnyHolder
  /** the relay that the employer trusts, such as the deployment document's */
  relay: RelayDocument | undefined
  batch: string
  payees: readonly Payee[]
  seals: OwnSeals
  /** how many channels to divide the run among */
  channels: number
  /** whether to revoke the rest in the end */
  revokes: boolean
  say(line: string): void
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
