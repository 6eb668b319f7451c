import type { Database } from '#lib/db/connection.ts'
import type { Network } from '#lib/stellar/network.ts'
import { RELAY_TIMES } from './relay.ts'

/** How often a ledger closes, in seconds: the embedded ledger every second, testnet every five. */
const ledgerSecondsOf = ({ name }: Pick<Network, 'name'>): number => (name === 'testnet' ? 5 : 1)

/** Seconds between two payments of one channel: a proof, on two processors, and its ledger. */
const PAYOUT_SECONDS = 15

/** How many ledgers a channel needs for each payout of a run. */
export const ledgersPerPayout = (network: Pick<Network, 'name'>): number =>
  Math.ceil(PAYOUT_SECONDS / ledgerSecondsOf(network))

/** How many ledgers close while a transaction that a relay signs is valid. */
export const validityLedgers = (network: Pick<Network, 'name'>): number =>
  Math.ceil(RELAY_TIMES.validity / ledgerSecondsOf(network))

/** How many ledgers a delegation must last beyond those of its own payouts. */
export async function readMarginLedgers(_db: Database, network: Pick<Network, 'name'>): Promise<number> {
  return validityLedgers(network)
}
