import { Keypair, xdr } from '@stellar/stellar-sdk'
import { readEntries } from './entries.ts'
import type { Network } from './network.ts'

/** An account's entry as of a ledger; undefined if there is no such account. */
export interface AccountReading {
  account: xdr.AccountEntry | undefined
  latestLedger: number
}

/** @throws Refusal `unavailable` */
export type ReadAccount = (address: string) => Promise<AccountReading>

/** Those who ask within this time share one question to the RPC. */
const GATHER_MS = 5

/** The RPC's own limit on the keys of one question. */
const MOST_KEYS = 200

interface Asker {
  address: string
  resolve(reading: AccountReading): void
  reject(error: unknown): void
}

/** Reads accounts, many at once where many ask at once, so that a crowd costs a few RPC calls. */
export function openAccounts(network: Network): ReadAccount {
  const askers: Asker[] = []

  async function ask(): Promise<void> {
    const asking = askers.splice(0, MOST_KEYS)
    if (askers.length > 0) setTimeout(ask, 0)
    const addresses = [...new Set(asking.map(({ address }) => address))]
    try {
      const { entries, latestLedger } = await readEntries(network.server, addresses.map(keyOf))
      const accounts = new Map(addresses.map((address, index) => [address, entries[index]]))
      for (const { address, resolve } of asking) {
        const entry = accounts.get(address)
        resolve({ account: entry?.type === 'account' ? entry.account : undefined, latestLedger })
      }
    } catch (error) {
      for (const { reject } of asking) reject(error)
    }
  }

  return (address) =>
    new Promise((resolve, reject) => {
      askers.push({ address, resolve, reject })
      if (askers.length === 1) setTimeout(ask, GATHER_MS)
    })
}

function keyOf(address: string): xdr.LedgerKey {
  const accountId = Keypair.fromPublicKey(address).xdrAccountId()
  return xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId }))
}
