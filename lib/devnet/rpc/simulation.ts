import { xdr } from '@stellar/stellar-sdk'
import { baseAccount } from '#lib/stellar/node/envelope.ts'
import { estimateResources } from '../host/estimate.ts'
import { type AuthMode, invokeHostFunction } from '../host/invocation.ts'
import { presentChange, type StateChange } from '../host/state-change.ts'
import { compareKeys } from '../state/key-order.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { State } from '../state/state.ts'
import { readEnvelope } from '../transaction/envelope.ts'

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
  readonly params: SimulationParams
}

/** XDR in base64. An `error` without `events` was found before the call ran. */
export interface SimulationAnswer {
  readonly error?: string
  readonly events?: string[]
  readonly transactionData?: string
  readonly minResourceFee?: string
  readonly results?: { readonly auth: string[]; readonly xdr: string }[]
  readonly stateChanges?: StateChange[]
}

/** The error for an instruction leeway beyond 32 bits, which is checked after the run. */
export const LEEWAY_TOO_LARGE = 'out of range integral type conversion attempted'

/** The call to simulate, or the error of a request without one. */
type Subject =
  | { readonly error: string }
  | {
      readonly source: string
      readonly invocation: xdr.InvokeHostFunctionOp
      readonly mode: AuthMode
    }

/**
 * The response of simulateTransaction without latestLedger. An invalid request returns an `error` and never throws.
 * Doesn't check sequence number, fee, time bounds or signatures of the envelope, and doesn't change the state.
 */
export function simulateTransaction({ state, ledger, params }: Simulation): SimulationAnswer {
  const subject = readSubject(params, ledger)
  if ('error' in subject) return subject
  const { source, mode, invocation } = subject
  const { hostFunction, auth } = invocation
  const layer = state.fork()
  const run = invokeHostFunction({ state: layer, ledger, source, hostFunction, auth, mode, footprint: 'record' })
  const events = run.diagnostics.map((event) => event.toXdr('base64'))
  if (!run.ok) return { error: run.error, events }
  const leeway = params.resourceConfig?.instructionLeeway ?? 0
  if (leeway > 0xffff_ffff) return { error: LEEWAY_TOO_LARGE }
  const authorized = mode.kind === 'record' ? run.auth : auth
  const data = estimateResources({
    run,
    before: state,
    state: layer,
    sequence: ledger.sequence,
    operation: new xdr.InvokeHostFunctionOp({ hostFunction, auth: [...authorized] }),
    leeway,
  })
  const stateChanges = layer
    .changes()
    .toSorted((left, right) => compareKeys(readKey(left.key), readKey(right.key)))
    .flatMap(presentChange)
  return {
    transactionData: data.toXdr('base64'),
    minResourceFee: String(data.resourceFee),
    events,
    results: [{ auth: authorized.map((entry) => entry.toXdr('base64')), xdr: run.returnValue.toXdr('base64') }],
    ...(stateChanges.length > 0 && { stateChanges }),
  }
}

function readSubject(params: SimulationParams, ledger: LedgerContext): Subject {
  const tx = decodeTransaction(params.transaction, ledger.networkId)
  if (!tx) return { error: 'Could not unmarshal transaction' }
  const [operation, ...others] = tx.operations
  if (!operation || others.length > 0) return { error: 'Transaction contains more than one operation' }
  if (tx.memo.type !== 'memoNone') {
    return { error: 'Transaction contains a memo. Soroban transactions do not support memos.' }
  }
  if (operation.body.type !== 'invokeHostFunction') {
    const { type } = operation.body
    const name = `OperationType${type.charAt(0).toUpperCase()}${type.slice(1)}`
    return { error: `transaction contains unsupported operation type: ${name}` }
  }
  const invocation = operation.body.invokeHostFunctionOp
  const mode = authModeFor(params, invocation.auth.length > 0)
  if ('error' in mode) return mode
  return { source: baseAccount(operation.sourceAccount ?? tx.sourceAccount), invocation, mode }
}

const readKey = (key: string) => xdr.LedgerKey.fromXdr(key, 'base64')

function decodeTransaction(text: string, networkId: Uint8Array): xdr.Transaction | undefined {
  try {
    return readEnvelope(text, networkId).inner.tx
  } catch {
    return undefined
  }
}

/** Without authMode, existing authorizations are enforced; if there are none, they are recorded, tied to the root. */
function authModeFor(params: SimulationParams, hasAuth: boolean): AuthMode | { readonly error: string } {
  const { authMode = '', useUpgradedAuth = false } = params
  switch (authMode === '' ? (hasAuth ? 'enforce' : 'record') : authMode) {
    case 'enforce':
      return { kind: 'enforce' }
    case 'record':
    case 'record_allow_nonroot':
      if (hasAuth) return { error: `cannot set authMode to '${authMode}' with an auth footprint` }
      return { kind: 'record', allowNonRoot: authMode === 'record_allow_nonroot', upgraded: useUpgradedAuth }
    default:
      return { error: "optional 'authMode' must be one of enforce,record,record_allow_nonroot when included" }
  }
}
