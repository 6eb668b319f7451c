import type { PublicRelayKey } from '#lib/config/relay-key.ts'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { readLatestLedger } from '#lib/stellar/latest-ledger.ts'
import type { Network } from '#lib/stellar/network.ts'
import { findRunChannels } from './channel-state.ts'
import { RELAY_TIMES } from './relay.ts'

/** What a client needs to delegate to the relay's channels. */
interface RunTerms {
  /** the key that amounts are sealed to */
  publicKey: PublicRelayKey
  channels: { address: string; available: boolean }[]
  maxChannels: number
  latestLedger: number
  /** how many ledgers a channel needs for each payout of a run */
  ledgersPerPayout: number
  /** how many ledgers a delegation must last beyond those of its own payouts */
  marginLedgers: number
}

/** How often a ledger closes, in seconds: the embedded ledger every second, testnet every five. */
const ledgerSecondsOf = ({ name }: Pick<Network, 'name'>): number => (name === 'testnet' ? 5 : 1)

/** Seconds between two payments of one channel: its ledger, and a proof on two processors. */
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

/**
 * Reads the terms of a run.
 * @throws Refusal `runs-not-wired` without a running relay that can pay from a delegation; LedgerError `unavailable`
 */
export async function readRunTerms(
  db: Database,
  { token, network, key, maxChannels }: { token: string; network: Network; key: PublicRelayKey; maxChannels: number },
): Promise<RunTerms> {
  const channels = await findRunChannels(db, token)
  if (!channels.some(({ isWired }) => isWired)) throw new Refusal('runs-not-wired')
  const { sequence: latestLedger } = await readLatestLedger(network)
  return {
    publicKey: key,
    channels: channels.map(({ address, isAvailable: available }) => ({ address, available })),
    maxChannels,
    latestLedger,
    ledgersPerPayout: ledgersPerPayout(network),
    marginLedgers: await readMarginLedgers(db, network),
  }
}
