import type { xdr } from '@stellar/stellar-sdk'
import type { State } from '../state.ts'

/** The ledger in which a call runs: the one being built, or in a simulation the last closed one. */
export interface LedgerContext {
  readonly sequence: number
  /** unix seconds */
  readonly closeTime: number
  /** SHA-256 of the passphrase, 32 bytes */
  readonly networkId: Uint8Array
  readonly passphrase: string
}

export type AuthMode =
  | { readonly kind: 'enforce' }
  | { readonly kind: 'record'; readonly allowNonRoot: boolean; readonly upgraded: boolean }

export interface Invocation {
  readonly state: State
  readonly ledger: LedgerContext
  /** strkey (G…) of the operation's source, or else the transaction's */
  readonly source: string
  readonly hostFunction: xdr.HostFunction
  readonly auth: readonly xdr.SorobanAuthorizationEntry[]
  readonly mode: AuthMode
  readonly footprint: xdr.LedgerFootprint | 'record'
}

export type InvocationResult =
  | {
      readonly ok: true
      readonly returnValue: xdr.ScVal
      readonly events: xdr.ContractEvent[]
      readonly diagnostics: xdr.DiagnosticEvent[]
      readonly footprint: xdr.LedgerFootprint
      readonly auth: xdr.SorobanAuthorizationEntry[]
      readonly instructions: number
    }
  | {
      readonly ok: false
      readonly code: 'trapped' | 'resource-limit-exceeded' | 'entry-archived'
      readonly error: string
      readonly diagnostics: xdr.DiagnosticEvent[]
    }

/** Runs one host function. Writes go to `invocation.state`; on failure the caller drops that layer. */
export function invokeHostFunction(_invocation: Invocation): InvocationResult {
  throw new Error('not built yet')
}
