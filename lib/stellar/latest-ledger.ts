import { z } from 'zod'
import { NO_HASH } from './ledger-range.ts'
import { type Network, RpcError } from './network.ts'
import { lookUp } from './transaction.ts'

/** The latest ledger of an RPC. */
interface LatestLedger {
  sequence: number
  /** when it closed, unix seconds */
  closedAt: number
}

const HEALTH = z.object({
  latestLedger: z.number().int().positive(),
  latestLedgerCloseTime: z.coerce.number().int().optional(),
  oldestLedger: z.number().int().positive(),
})

/**
 * The ledgers whose transactions and events the RPC has, and when the latest closed. While the network stands still, getHealth is an
 * error, and getTransaction still names them. Before 27.1, stellar-rpc had no close time in getHealth.
 * @throws LedgerError `unavailable`
 */
export async function readLedgers(
  network: Pick<Network, 'call'>,
): Promise<{ latestLedger: number; latestLedgerCloseTime: number; oldestLedger: number }> {
  const health = await network.call('getHealth', {}, HEALTH).catch((error: Error) => {
    if (!(error.cause instanceof RpcError)) throw error
  })
  const { latestLedgerCloseTime } = health ?? {}
  return health && latestLedgerCloseTime !== undefined
    ? { ...health, latestLedgerCloseTime }
    : await lookUp(network, NO_HASH)
}

/** Reads the latest ledger. @throws LedgerError `unavailable` */
export async function readLatestLedger(network: Pick<Network, 'call'>): Promise<LatestLedger> {
  const { latestLedger: sequence, latestLedgerCloseTime: closedAt } = await readLedgers(network)
  return { sequence, closedAt }
}
