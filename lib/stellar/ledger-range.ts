import type { rpc } from '@stellar/stellar-sdk'
import { reachLedger } from './ledger-error.ts'

/** No transaction has this hash, so the response contains only the ledgers of the RPC. */
export const NO_HASH = '0'.repeat(64)

/** The ledgers whose transactions and events an RPC has, and when the first and the last of them closed (unix seconds). */
export interface LedgerRange {
  latestLedger: number
  latestLedgerCloseTime: number
  oldestLedger: number
  oldestLedgerCloseTime: number
}

/**
 * Reads the range of an RPC. Not from getHealth, which is an error while the network stands still, nor from getLatestLedger, whose
 * header the SDK may not be able to decode.
 * @throws LedgerError `unavailable`
 */
export const readLedgerRange = (server: Pick<rpc.Server, 'getTransaction'>): Promise<LedgerRange> =>
  reachLedger(server.getTransaction(NO_HASH))
