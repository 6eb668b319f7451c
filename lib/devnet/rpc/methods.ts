import type { Ledger } from '../apply/ledger.ts'
import { getLedgerEntries } from './entries.ts'
import { getEvents } from './events.ts'
import { getFeeStats } from './fee-stats.ts'
import { invalidParams, isObject, type Method, type Params } from './json-rpc.ts'
import { getHealth, getLatestLedger, getLedgers, getNetwork, getVersionInfo } from './network.ts'
import { simulatedState } from './simulated-state.ts'
import { simulateTransaction } from './simulation.ts'
import { getTransaction, getTransactions, sendTransaction } from './transactions.ts'

/** The methods of Stellar RPC, by name. */
export function rpcMethods(ledger: Ledger, friendbotUrl: string): Readonly<Record<string, Method>> {
  return {
    getHealth: () => getHealth(ledger),
    getNetwork: () => getNetwork(ledger, friendbotUrl),
    getVersionInfo,
    getLatestLedger: () => getLatestLedger(ledger),
    getFeeStats: () => getFeeStats(ledger),
    getLedgerEntries: (params) => getLedgerEntries(ledger, params),
    simulateTransaction: (params) => simulate(ledger, params),
    sendTransaction: (params) => sendTransaction(ledger, params),
    getTransaction: (params) => getTransaction(ledger, params),
    getTransactions: (params) => getTransactions(ledger, params),
    getLedgers: (params) => getLedgers(ledger, params),
    getEvents: (params) => getEvents(ledger, params),
  }
}

/** What the client sent, as far as it has the right types; the rest counts as left out. */
function simulate(ledger: Ledger, { transaction, authMode, useUpgradedAuth, resourceConfig }: Params): object {
  if (typeof transaction !== 'string') throw invalidParams('transaction must be a string')
  const leeway = isObject(resourceConfig) ? resourceConfig.instructionLeeway : undefined
  const body = simulateTransaction({
    state: simulatedState(ledger.state),
    ledger: ledger.context(),
    passphrase: ledger.passphrase,
    params: {
      transaction,
      ...(typeof authMode === 'string' ? { authMode } : {}),
      ...(typeof useUpgradedAuth === 'boolean' ? { useUpgradedAuth } : {}),
      ...(typeof leeway === 'number' ? { resourceConfig: { instructionLeeway: leeway } } : {}),
    },
  })
  return { latestLedger: ledger.history.latest().sequence, ...body }
}
