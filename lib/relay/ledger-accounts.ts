import type { AccountReading, ReadAccount } from '#lib/stellar/account.ts'
import type { Recency } from '#lib/transfers/recency.ts'

/** Reads accounts for payments that several channels make in the same ledger: they share one call of the RPC. */
export type ReadLedgerAccount = (address: string) => Promise<AccountReading>

/**
 * An account changes only when a ledger closes, so what a response of the latest known ledger shows holds until the next one
 * is known. A response of an older ledger is returned once and not kept.
 * @param channels the addresses that are read together with the first account in each ledger
 */
export function openLedgerAccounts(
  { readAccount, recency }: { readAccount: ReadAccount; recency: Pick<Recency, 'latestLedger'> },
  channels: readonly string[],
): ReadLedgerAccount {
  let known = { ledger: 0, readings: new Map<string, Promise<AccountReading>>() }

  function read(address: string): Promise<AccountReading> {
    const { ledger, readings } = known
    const reading = readings.get(address) ?? readAccount(address)
    readings.set(address, reading)
    const forget = () => readings.delete(address)
    reading.then(({ latestLedger }) => latestLedger < ledger && forget(), forget)
    return reading
  }

  return async (address) => {
    const ledger = recency.latestLedger()
    if (known.ledger !== ledger || ledger === 0) {
      known = { ledger, readings: new Map() }
      for (const channel of channels) read(channel).catch(() => undefined)
    }
    return await read(address)
  }
}
