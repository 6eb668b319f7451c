import { xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import type { Ledger } from '../apply/ledger.ts'
import type { StateChange } from '../host/state-change.ts'
import { invalidParams, type Params } from './json-rpc.ts'
import { simulatedState } from './simulated-state.ts'
import { type SimulationAnswer, simulateTransaction } from './simulation.ts'
import { formatFault, formatXdr, toJson } from './xdr-format.ts'

const requestSchema = z.object({
  transaction: z.string().nullish(),
  authMode: z.string().nullish(),
  useUpgradedAuth: z.boolean().nullish(),
  resourceConfig: z.object({ instructionLeeway: z.int().min(0).nullish() }).nullish(),
})

export function simulate(ledger: Ledger, params: Params): object {
  const request = requestSchema.safeParse(params)
  if (!request.success) throw invalidParams('invalid parameters')
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
  // The real server refuses what it cannot read before it knows the latest ledger.
  const latestLedger = answer.error !== undefined && !answer.events ? 0 : ledger.history.latest().sequence
  return { latestLedger, ...(params.xdrFormat === 'json' ? inJson(answer) : answer) }
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

/** In JSON the real server has `before` and `after`, too, both null. */
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
