import type { RelayDocument } from '#lib/wallet/deployment.ts'
import type { AnyHolder } from '#lib/wallet/keys.ts'
import type { OwnNotes } from './own-notes.ts'
import type { DeploymentWithHistory } from './own-payments.ts'
import type { Payee } from './payees.ts'
import type { PayrollClient } from './payroll-client.ts'

/** The run that an employer wants: everything except the state in the service, on the ledger and of the notes. */
export interface RunRequest {
  deployment: DeploymentWithHistory
  client: PayrollClient
  holder: AnyHolder
  /** the relay that the employer trusts, such as the deployment document's */
  relay: RelayDocument | undefined
  batch: string
  payees: readonly Payee[]
  notes: OwnNotes
  /** how many channels to divide the run among */
  channels: number
  /** whether to revoke the rest in the end */
  revokes: boolean
  /**
   * The employer knows that no payout of the batch is paid but those that the ledger shows by their marks: payments to a payee
   * without a known purpose were for something else, and what is missing of the account's history holds none.
   */
  assumesUnpaid?: boolean
  /** how many ledgers a delegation may last; by default twice what its payouts take, and a day */
  maxLedgers?: number | undefined
  /** how long (ms) to wait until the ledger shows what the service calls paid: a minute by default */
  seenMs?: number
  say(line: string): void
  /** how far the call is, for a page */
  progress?(progress: RunProgress): void
  /** ends the call between two steps, with the signal's reason */
  signal?: AbortSignal | undefined
}

/** `done` of `of` payouts, or of delegations; `etaSeconds` once the pace is known. */
export interface RunProgress {
  step: 'looking' | 'sealing' | 'delegating' | 'paying' | 'checking'
  done: number
  of: number
  etaSeconds?: number
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
