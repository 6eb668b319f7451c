import { createHash } from 'node:crypto'
import { xdr } from '@stellar/stellar-sdk'
import { invokeHostFunction } from '../host/invocation.ts'
import { eventBytes } from '../host/resources.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import type { State } from '../state/state.ts'
import type { Inner } from '../transaction/envelope.ts'
import { eventsFee, nonRefundableFee, rentFee } from '../transaction/fees.ts'
import { diagnosticEvent } from '../transaction/results.ts'

const Result = xdr.InvokeHostFunctionResult
const OUTCOME = {
  trapped: Result.invokeHostFunctionTrapped(),
  'resource-limit-exceeded': Result.invokeHostFunctionResourceLimitExceeded(),
} as const

/** The used part of the resource fee, in stroops. The rest is refunded to the fee source. */
export interface SorobanCharge {
  readonly nonRefundable: bigint
  /** rent and events together */
  readonly refundable: bigint
  readonly rent: bigint
}

interface SorobanOutcome {
  readonly ok: boolean
  readonly result: xdr.OperationResult
  readonly events: xdr.ContractEvent[]
  readonly charge: SorobanCharge
  readonly returnValue: xdr.ScVal | null
  readonly diagnostics: xdr.DiagnosticEvent[]
}

/** The charge of a Soroban transaction that fails or never runs: only the non-refundable part. */
export function unusedCharge(inner: Inner): SorobanCharge {
  const nonRefundable = inner.soroban ? nonRefundableFee(inner.soroban.resources, inner.size) : 0n
  return { nonRefundable, refundable: 0n, rent: 0n }
}

/** Runs the one operation of a Soroban transaction in `state`; on failure the caller drops that layer. */
export function applySoroban(inner: Inner, source: string, state: State, ledger: LedgerContext): SorobanOutcome {
  const [operation] = inner.tx.operations
  const { soroban } = inner
  if (operation?.body.type !== 'invokeHostFunction' || !soroban) throw new Error('not a valid contract call')
  const { hostFunction, auth } = operation.body.invokeHostFunctionOp
  const { resources } = soroban
  const charge = unusedCharge(inner)
  const fail = (result: xdr.InvokeHostFunctionResult, diagnostics: xdr.DiagnosticEvent[]): SorobanOutcome => {
    return { ok: false, result: wrap(result), events: [], charge, returnValue: null, diagnostics }
  }
  const mode = { kind: 'enforce' } as const
  const { footprint } = resources
  const run = invokeHostFunction({ state, ledger, source, hostFunction, auth, mode, footprint, resources })
  if (!run.ok) return fail(OUTCOME[run.code], run.diagnostics)
  const success = new xdr.InvokeHostFunctionSuccessPreImage({
    returnValue: run.returnValue,
    events: run.events,
  }).toXdr()
  const rent = rentFee(state.changes(), ledger.sequence)
  const refundable = rent + eventsFee(eventBytes(run.events, run.returnValue))
  const pool = soroban.resourceFee - charge.nonRefundable
  if (refundable > pool) {
    const text = 'refundable resource fee was not sufficient to cover rent and events'
    const reason = diagnosticEvent({ kind: 'Budget', code: 'ExceededLimit', text, values: [refundable, pool] })
    return fail(Result.invokeHostFunctionInsufficientRefundableFee(), [...run.diagnostics, reason])
  }
  return {
    ok: true,
    result: wrap(Result.invokeHostFunctionSuccess(createHash('sha256').update(success).digest())),
    events: run.events,
    charge: { ...charge, refundable, rent },
    returnValue: run.returnValue,
    diagnostics: run.diagnostics,
  }
}

function wrap(result: xdr.InvokeHostFunctionResult): xdr.OperationResult {
  return xdr.OperationResult.opInner(xdr.OperationResultTr.invokeHostFunction(result))
}
