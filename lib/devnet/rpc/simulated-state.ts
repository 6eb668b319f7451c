import { xdr } from '@stellar/stellar-sdk'
import { withSequence } from '../state/account.ts'
import { openView, type State, type StoredEntry } from '../state/state.ts'

/**
 * The state for simulations: an account that has never used a sequence number grows by its CAP-21 extension when its
 * first transaction is applied, so its size includes that (soroban-simulation's SimulationSnapshotSource). Without
 * this, the first call of a new account would declare too few read bytes and fail.
 */
export function simulatedState(state: State): State {
  return openView((key) => {
    const entry = state.get(key)
    return entry && extended(entry)
  })
}

function extended(entry: StoredEntry): StoredEntry {
  if (entry.data.type !== 'account' || entry.data.account.ext.type === 'v1') return entry
  const { account } = entry.data
  const grown = withSequence(account, account.seqNum, { sequence: 0, closeTime: 0 })
  return { ...entry, data: xdr.LedgerEntryData.account(grown) }
}
