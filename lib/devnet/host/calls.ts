import type { xdr } from '@stellar/stellar-sdk'
import type { LedgerContext } from '../state/ledger-context.ts'
import { decodeArguments } from './arguments.ts'
import type { Authorization, Frame } from './authorization.ts'
import type { Budget } from './budget.ts'
import type { Call } from './contract-function.ts'
import { contractAt } from './contracts.ts'
import { contractEvent, diagnostic, errorEvent } from './events.ts'
import { HostError, hostError } from './host-error.ts'
import type { Instance } from './instance.ts'
import { symbol } from './scval.ts'
import type { Storage } from './storage.ts'

export interface Calls {
  invoke(contract: string, name: string, args: xdr.ScVal[]): xdr.ScVal
  readonly events: xdr.ContractEvent[]
  readonly diagnostics: xdr.DiagnosticEvent[]
  /** Whether this error has a diagnostic event. */
  explained(error: HostError): boolean
}

/** The stack of contract calls of one host function. */
export function openCalls(environment: {
  readonly ledger: LedgerContext
  readonly storage: Storage
  readonly authorization: Authorization
  readonly budget: Budget
}): Calls {
  const { ledger, storage, authorization, budget } = environment
  const events: xdr.ContractEvent[] = []
  const diagnostics: xdr.DiagnosticEvent[] = []
  let explained: HostError | undefined

  const explain = (error: HostError, contract: string | undefined) => {
    if (error.events !== 'logged') return
    const event =
      error === explained
        ? errorEvent(contract, error, 'escalating error to VM trap from failed host function call: call')
        : errorEvent(contract, error, error.message, error.values)
    diagnostics.push(event)
    explained = error
  }

  const callFor = (frame: Frame, invoker: string | undefined, instance: Instance): Call => ({
    ...instance,
    contract: frame.contract,
    ledger,
    storage,
    spend: budget.spend,
    requireAuth: (address) => {
      // A contract needs no entry for its own direct calls.
      if (address !== invoker) authorization.require(address, frame)
    },
    invoke: (contract, name, args) => invoke({ contract, name, args }, frame.contract),
    publish: (topics, data) => {
      const event = contractEvent(frame.contract, topics, data)
      events.push(event)
      diagnostics.push(diagnostic(event, true))
    },
  })

  const invoke = (frame: Frame, invoker: string | undefined): xdr.ScVal => {
    authorization.enter()
    // Without a contract at the address, there is no frame, so the error belongs to the caller.
    let failing = invoker
    try {
      const { instance, functions, isAsset } = contractAt(frame.contract, storage)
      failing = frame.contract
      const called = functions.get(frame.name)
      if (!called) throw unknownFunction(frame.name, isAsset)
      budget.spend(called.instructions)
      return called.run(callFor(frame, invoker, instance), decodeArguments(called, frame, isAsset))
    } catch (cause) {
      if (cause instanceof HostError) explain(cause, failing)
      throw cause
    } finally {
      authorization.leave()
    }
  }

  return {
    invoke: (contract, name, args) => invoke({ contract, name, args }, undefined),
    events,
    diagnostics,
    explained: (error) => explained === error,
  }
}

function unknownFunction(name: string, isAsset: boolean): HostError {
  return isAsset
    ? hostError('Value', 'InvalidInput', 'symbol not found in slice of strs', [symbol(name)])
    : hostError('WasmVm', 'MissingValue', `trying to invoke non-existent function: ${name}`)
}
