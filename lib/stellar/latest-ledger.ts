import { z } from 'zod'
import type { Network } from './network.ts'
import { lookUp } from './transaction.ts'

/** The latest ledger of an RPC. */
interface LatestLedger {
  sequence: number
  /** when it closed, unix seconds */
  closedAt: number
}

const HEALTH = z.object({
  latestLedger: z.number().int(),
  latestLedgerCloseTime: z.coerce.number().int().optional(),
})

/** No transaction has this hash, so the response contains only the latest ledger. */
const NO_HASH = '0'.repeat(64)

/**
 * Reads the latest ledger. Before 27.1, stellar-rpc had no close time in getHealth; getTransaction always has one.
 * @throws LedgerError `unavailable`, including when the RPC considers itself unhealthy
 */
export async function readLatestLedger(network: Pick<Network, 'call'>): Promise<LatestLedger> {
  const health = await network.call('getHealth', {}, HEALTH)
  const { latestLedger: sequence, latestLedgerCloseTime: closedAt } = health
  if (closedAt !== undefined) return { sequence, closedAt }
  const range = await lookUp(network, NO_HASH)
  return { sequence: range.latestLedger, closedAt: range.latestLedgerCloseTime }
}
