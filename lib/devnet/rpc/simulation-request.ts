import { xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import type { Ledger } from '../apply/ledger.ts'
import type { StateChange } from '../host/state-change.ts'
import { isObject, type Params, type RpcError, wrongType } from './json-rpc.ts'
import { simulatedState } from './simulated-state.ts'
import { LEEWAY_TOO_LARGE, type SimulationAnswer, simulateTransaction } from './simulation.ts'
import { formatFault, formatXdr, toJson } from './xdr-format.ts'

const requestSchema = z.object({
  transaction: z.string().nullish(),
  authMode: z.string().nullish(),
  useUpgradedAuth: z.boolean().nullish(),
  resourceConfig: z.object({ instructionLeeway: z.int().min(0).nullish() }).nullish(),
})
const GO_TYPES: Readonly<Record<string, string>> = {
  transaction: 'string',
  authMode: 'string',
  useUpgradedAuth: 'bool',
  resourceConfig: 'protocol.ResourceConfig',
  'resourceConfig.instructionLeeway': 'uint64',
}

export function simulate(ledger: Ledger, params: Params): object {
  const request = requestSchema.safeParse(params)
  if (!request.success) throw faultOf(params, request.error)
  const { transaction, authMode, useUpgradedAuth, resourceConfig } = request.data
  const fault = formatFault(params)
  if (fault !== undefined) return { error: fault, latestLedger: 0 }
  const answer = simulateTransaction({
    state: simulatedState(ledger.state),
    ledger: ledger.context(),
    params: {
      transaction: transaction ?? '',
      authMode: authMode ?? '',
      useUpgradedAuth: useUpgradedAuth ?? false,
      resourceConfig: { instructionLeeway: resourceConfig?.instructionLeeway ?? 0 },
    },
  })
  // The real server rejects an unreadable request before it reads the latest ledger.
  const isUnread = answer.error !== undefined && answer.error !== LEEWAY_TOO_LARGE && !answer.events
  const latestLedger = isUnread ? 0 : ledger.history.latest().sequence
  return { latestLedger, ...(params.xdrFormat === 'json' ? inJson(answer) : answer) }
}

function faultOf(params: Params, { issues: [issue] }: z.ZodError): RpcError {
  const path = issue?.path.map(String) ?? []
  const value = path.reduce<unknown>((parent, name) => (isObject(parent) ? parent[name] : undefined), params)
  const field = path.join('.')
  return wrongType(value, `SimulateTransactionRequest.${field}`, GO_TYPES[field] ?? 'string')
}

function inJson({ events, transactionData, results, stateChanges, ...rest }: SimulationAnswer): object {
  return {
    ...rest,
    ...formatXdr('json', {
      transactionData: { type: xdr.SorobanTransactionData, xdr: transactionData },
      events: { type: xdr.DiagnosticEvent, xdr: events },
    }),
    ...(results && {
      results: results.map((result) =>
        formatXdr('json', {
          returnValue: { type: xdr.ScVal, xdr: result.xdr },
          auth: { type: xdr.SorobanAuthorizationEntry, xdr: result.auth.length > 0 ? result.auth : undefined },
        }),
      ),
    }),
    ...(stateChanges && { stateChanges: stateChanges.map(changeInJson) }),
  }
}

/** In JSON, the real server also returns `before` and `after`, both null. */
function changeInJson({ type, key, before, after }: StateChange): object {
  return {
    type,
    keyJson: toJson(xdr.LedgerKey, key),
    before: null,
    after: null,
    ...(before !== null && { beforeJson: toJson(xdr.LedgerEntry, before) }),
    ...(after !== null && { afterJson: toJson(xdr.LedgerEntry, after) }),
  }
}
