import { Keypair, xdr } from '@stellar/stellar-sdk'
import { type EntryReader, readEntries, unreachable } from './entries.ts'
import type { Network } from './network.ts'

/**
 * The entries of the accounts at `addresses` (G…, at most 200) in their order, undefined where there is none, and the
 * ledger of the answer. Only an empty place in a sound answer says that an account does not exist.
 * @throws Refusal `unavailable`, also for an answer that holds anything but these accounts
 */
export async function readAccounts(
  server: EntryReader,
  addresses: readonly string[],
): Promise<{ accounts: (xdr.AccountEntry | undefined)[]; latestLedger: number }> {
  const ids = addresses.map((address) => Keypair.fromPublicKey(address).xdrAccountId())
  const keys = ids.map((accountId) => xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId })))
  const { entries, latestLedger } = await readEntries(server, keys)
  const accounts = entries.map((found, index) => {
    if (found === undefined) return undefined
    const entry = found.val
    const id = ids[index]
    if (entry.type !== 'account' || !id || !entry.account.accountId.equals(id)) {
      throw unreachable(new Error('the RPC answered with another entry than was asked for'))
    }
    return entry.account
  })
  return { accounts, latestLedger }
}

/** The same of one account. */
export async function readAccount(server: EntryReader, address: string): Promise<AccountReading> {
  const { accounts, latestLedger } = await readAccounts(server, [address])
  return { account: accounts[0], latestLedger }
}

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
      const { accounts, latestLedger } = await readAccounts(network.server, addresses)
      const found = new Map(addresses.map((address, index) => [address, accounts[index]]))
      for (const { address, resolve } of asking) resolve({ account: found.get(address), latestLedger })
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
