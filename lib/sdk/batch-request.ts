import type { AnyHolder } from '#lib/wallet/keys.ts'
import type { OwnNotes } from './own-notes.ts'
import type { DeploymentWithHistory } from './own-payments.ts'
import type { Payee } from './payees.ts'
import type { PayrollClient } from './payroll-client.ts'

/** The batch that an employer pays: everything except the state in the service, on the ledger and of the notes. */
export interface BatchRequest {
  deployment: DeploymentWithHistory
  client: PayrollClient
  holder: AnyHolder
  batch: string
  payees: readonly Payee[]
  notes: OwnNotes
  /**
   * The employer knows that no payout of the batch is paid but those that the ledger shows by their marks: payments to a payee
   * without a known purpose were for something else, and the missing part of the account's history contains no such payment.
   */
  assumesUnpaid?: boolean
  /** how long (ms) to wait until the ledger shows what the service calls paid: a minute by default */
  seenMs?: number
  say(line: string): void
  /** how far the call is, for a page */
  progress?(progress: BatchProgress): void
  /** ends the call between two steps, with the signal's reason */
  signal?: AbortSignal | undefined
}

/** `done` of `of` payouts, or of delegations; `etaSeconds` once the pace is known. */
export interface BatchProgress {
  step: 'looking' | 'sealing' | 'delegating' | 'paying' | 'checking'
  done: number
  of: number
  etaSeconds?: number
}
