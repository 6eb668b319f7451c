import type { LedgerContext } from './host/invoke.ts'
import type { State } from './state.ts'

export interface SimulationParams {
  /** base64 XDR of a TransactionEnvelope */
  transaction: string
  authMode?: string
  useUpgradedAuth?: boolean
  resourceConfig?: { instructionLeeway?: number }
}

export interface Simulation {
  readonly state: State
  /** the last closed ledger */
  readonly ledger: LedgerContext
  readonly passphrase: string
  readonly params: SimulationParams
}

/** The JSON body of simulateTransaction without latestLedger. Never throws: every failure is an `error` string. */
export function simulateTransaction(_simulation: Simulation): object {
  return { error: 'not built yet' }
}
