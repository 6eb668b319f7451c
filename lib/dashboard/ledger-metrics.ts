import type { Family } from '#lib/observability/metrics.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import type { Network } from '#lib/stellar/network.ts'

export type LedgerReader = Pick<Network, 'call'>

/**
 * Returns the RPC's latest ledger and its age.
 * @throws LedgerError `unavailable`
 */
export async function ledgerFamilies(network: LedgerReader, now: Date): Promise<Family[]> {
  const { sequence: latestLedger, closedAt } = await readLatestLedger(network)
  const lag = Math.max(0, Math.round(now.getTime() / 1000) - closedAt)
  return [
    {
      name: 'payroll_rpc_latest_ledger',
      help: 'The latest ledger of the RPC.',
      type: 'gauge',
      samples: [{ labels: {}, value: latestLedger }],
    },
    {
      name: 'payroll_rpc_lag_seconds',
      help: 'The time since the latest ledger of the RPC closed.',
      type: 'gauge',
      samples: [{ labels: {}, value: lag }],
    },
  ]
}
