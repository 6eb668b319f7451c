import type { Ledger } from '../apply/ledger.ts'
import { getLedgerEntries } from './entries.ts'
import { getEvents } from './events.ts'
import { getFeeStats } from './fee-stats.ts'
import type { Method, Params } from './json-rpc.ts'
import { getHealth, getLatestLedger, getLedgers, getNetwork, getVersionInfo } from './network.ts'
import { simulate } from './simulation-request.ts'
import { getTransaction, getTransactions, sendTransaction } from './transactions.ts'

/** The methods of Stellar RPC, by name. */
export function rpcMethods(ledger: Ledger, friendbotUrl: string): Readonly<Record<string, Method>> {
  const method = (run: (ledger: Ledger, params: Params) => object | Promise<object>): Method => ({
    run: (params) => run(ledger, params),
  })
  return {
    getHealth: method(getHealth),
    getNetwork: method(() => getNetwork(ledger, friendbotUrl)),
    getVersionInfo: method(getVersionInfo),
    getLatestLedger: method(getLatestLedger),
    getFeeStats: method(getFeeStats),
    getLedgerEntries: method(getLedgerEntries),
    simulateTransaction: method(simulate),
    sendTransaction: method(sendTransaction),
    getTransaction: method(getTransaction),
    getTransactions: { ...method(getTransactions), positions: ['startLedger', 'pagination', 'xdrFormat'] },
    getLedgers: method(getLedgers),
    getEvents: method(getEvents),
  }
}
