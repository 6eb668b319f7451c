import { Address, type xdr } from '@stellar/stellar-sdk'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { State } from '../state/state.ts'
import { NETWORK_LIMITS } from '../transaction/fees.ts'
import { enforceAuthorization } from './auth-enforcing.ts'
import { recordAuthorization } from './auth-recording.ts'
import { openBudget } from './budget.ts'
import { openCalls } from './calls.ts'
import { describeFailure, diagnostic, errorEvent } from './events.ts'
import { HostError, hostError } from './host-error.ts'
import { checkEvents, checkReads, checkWrites, type DeclaredResources } from './resources.ts'
import { openStorage } from './storage.ts'

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
  /** Without them, only the network's limits apply. */
  readonly resources?: DeclaredResources
}

export type InvocationResult =
  | {
      readonly ok: true
      readonly returnValue: xdr.ScVal
      readonly events: xdr.ContractEvent[]
      readonly diagnostics: xdr.DiagnosticEvent[]
      readonly footprint: xdr.LedgerFootprint
      /** recorded entries; empty when enforcing */
      readonly auth: xdr.SorobanAuthorizationEntry[]
      readonly instructions: number
    }
  | {
      readonly ok: false
      readonly code: 'trapped' | 'resource-limit-exceeded'
      readonly error: string
      readonly diagnostics: xdr.DiagnosticEvent[]
    }

/**
 * Runs one host function. Writes go to `invocation.state`; on failure, the caller drops that layer. No result reports
 * an archived entry, because nothing is archived.
 */
export function invokeHostFunction(invocation: Invocation): InvocationResult {
  const { state, ledger, source, auth, mode, resources } = invocation
  const storage = openStorage(state, ledger.sequence, invocation.footprint)
  const { instructions } = NETWORK_LIMITS
  const budget = openBudget(Math.min(resources?.instructions ?? instructions, instructions))
  const context = { source, ledger, storage, budget }
  const authorization =
    mode.kind === 'enforce'
      ? enforceAuthorization({ ...context, entries: auth })
      : recordAuthorization({ ...context, allowNonRoot: mode.allowNonRoot, upgraded: mode.upgraded })
  const calls = openCalls({ ledger, storage, authorization, budget })
  try {
    if (invocation.footprint !== 'record') checkReads(state, invocation.footprint, resources)
    const { contract, name, args } = targetOf(invocation.hostFunction)
    const returnValue = calls.invoke(contract, name, args)
    const footprint = storage.footprint()
    checkWrites(state, footprint, resources)
    checkEvents(calls.events, returnValue)
    return {
      ok: true,
      returnValue,
      events: calls.events,
      diagnostics: calls.diagnostics,
      footprint,
      auth: authorization.entries(),
      instructions: budget.used(),
    }
  } catch (cause) {
    if (!(cause instanceof HostError)) throw cause
    if (cause.events === 'logged' && !calls.explained(cause))
      calls.diagnostics.push(errorEvent(undefined, cause, cause.message, cause.values))
    const diagnostics = calls.diagnostics.map(({ event }) => diagnostic(event, false))
    return {
      ok: false,
      code: cause.label.startsWith('Error(Budget,') ? 'resource-limit-exceeded' : 'trapped',
      error: describeFailure(cause, diagnostics),
      diagnostics,
    }
  }
}

function targetOf(hostFunction: xdr.HostFunction): { contract: string; name: string; args: xdr.ScVal[] } {
  if (hostFunction.type !== 'hostFunctionTypeInvokeContract') {
    throw hostError('Context', 'InvalidAction', 'contracts are built into this ledger: none can be uploaded or created')
  }
  const { contractAddress, functionName, args } = hostFunction.invokeContract
  if (contractAddress.type !== 'scAddressTypeContract') {
    throw hostError('Value', 'UnexpectedType', 'only a contract can be called')
  }
  return { contract: Address.fromScAddress(contractAddress).toString(), name: functionName.toString(), args }
}
