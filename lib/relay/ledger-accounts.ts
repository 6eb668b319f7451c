import type { AccountReading, ReadAccount } from '#lib/stellar/account.ts'
import type { LedgerView } from '#lib/stellar/view.ts'

/** How long (ms) a reading is shared at most. Several channels begin their next payments together, once a ledger has closed. */
const SHARED_MS = 1_000

/**
 * Reads accounts for payments that several channels begin in the same ledger, so that they share one call of the RPC. A reading is shared
 * until this process knows of a later ledger, and for a second at most: an idle process learns of no ledgers, and a payment must not
 * begin from signers of an hour ago. A reading of an earlier ledger than the known one, from a node that lags, is not shared.
 * @param channels the addresses that are read together with the first account
 */
export function openLedgerAccounts(
  { readAccount, view }: { readAccount: ReadAccount; view: Pick<LedgerView, 'latestLedger'> },
  channels: readonly string[],
): ReadAccount {
  let shared = { ledger: 0, until: 0, readings: new Map<string, Promise<AccountReading>>() }

  function read(address: string): Promise<AccountReading> {
    const { ledger, readings } = shared
    const known = readings.get(address)
    if (known) return known
    const reading = readAccount(address)
    readings.set(address, reading)
    const forget = () => readings.delete(address)
    reading.then(({ latestLedger }) => latestLedger < ledger && forget(), forget)
    return reading
  }

  return async (address) => {
    const ledger = view.latestLedger()
    if (shared.ledger !== ledger || performance.now() > shared.until) {
      shared = { ledger, until: performance.now() + SHARED_MS, readings: new Map() }
      for (const channel of channels) read(channel).catch(() => undefined)
    }
    return await read(address)
  }
}
