import type { xdr } from '@stellar/stellar-sdk'
import type { LedgerContext } from '../state/ledger-context.ts'
import { decodeArguments } from './arguments.ts'
import type { Authorisation, Frame } from './authorisation.ts'
import type { Call } from './contract-function.ts'
import { contractAt } from './contracts.ts'
import { contractEvent, diagnostic, errorEvent } from './events.ts'
import { HostError, hostError } from './host-error.ts'
import type { Instance } from './instance.ts'
import type { Storage } from './storage.ts'

export interface Calls {
  invoke(contract: string, name: string, args: xdr.ScVal[]): xdr.ScVal
  readonly events: xdr.ContractEvent[]
  readonly diagnostics: xdr.DiagnosticEvent[]
  /** instructions used so far */
  instructions(): number
  /** Whether there is a diagnostic event for this error. */
  explained(error: HostError): boolean
}

/** The stack of contract calls of one host function; `limit` in instructions. */
export function openCalls(environment: {
  readonly ledger: LedgerContext
  readonly storage: Storage
  readonly authorisation: Authorisation
  readonly limit: number
}): Calls {
  const { ledger, storage, authorisation, limit } = environment
  const events: xdr.ContractEvent[] = []
  const diagnostics: xdr.DiagnosticEvent[] = []
  let instructions = 0
  let explained: HostError | undefined

  const spend = (amount: number) => {
    instructions += amount
    if (instructions > limit) {
      throw hostError('Budget', 'ExceededLimit', `needs at least ${instructions} instructions, the limit is ${limit}`)
    }
  }

  const explain = (error: HostError, contract: string) => {
    const message =
      error === explained ? 'escalating error to VM trap from failed host function call: call' : error.message
    diagnostics.push(errorEvent(contract, error, message))
    explained = error
  }

  const callFor = (frame: Frame, invoker: string | undefined, instance: Instance): Call => ({
    ...instance,
    contract: frame.contract,
    ledger,
    storage,
    spend,
    requireAuth: (address) => {
      // A contract needs no entry for what it calls itself.
      if (address !== invoker) authorisation.require(address, frame)
    },
    invoke: (contract, name, args) => invoke({ contract, name, args }, frame.contract),
    publish: (topics, data) => {
      const event = contractEvent(frame.contract, topics, data)
      events.push(event)
      diagnostics.push(diagnostic(event, true))
    },
  })

  const invoke = (frame: Frame, invoker: string | undefined): xdr.ScVal => {
    authorisation.enter()
    try {
      const { instance, functions, isAsset } = contractAt(frame.contract, storage)
      const called = functions.get(frame.name)
      const host = isAsset ? 'Context' : 'WasmVm'
      if (!called) throw hostError(host, 'MissingValue', `trying to invoke non-existent function: ${frame.name}`)
      spend(called.instructions)
      return called.run(callFor(frame, invoker, instance), decodeArguments(called, frame.args, isAsset))
    } catch (cause) {
      if (cause instanceof HostError) explain(cause, frame.contract)
      throw cause
    } finally {
      authorisation.leave()
    }
  }

  return {
    invoke: (contract, name, args) => invoke({ contract, name, args }, undefined),
    events,
    diagnostics,
    instructions: () => instructions,
    explained: (error) => explained === error,
  }
}
