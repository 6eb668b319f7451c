import { Keypair, StrKey, xdr } from '@stellar/stellar-sdk'
import { type EntryReader, MAX_KEYS, readEntries } from './entries.ts'
import { ledgerUnreachable } from './ledger-error.ts'

/** A signer of an account: a G-address, and the weight of its signature (1 to 255). */
export interface Signer {
  key: string
  weight: number
}

/** Signers and thresholds of an account. Thresholds are at least 1, because the ledger requires a signer even for 0. */
export type AccountAuth =
  | { exists: false }
  | { exists: true; thresholds: { low: number; medium: number; high: number }; signers: Signer[] }

/**
 * Reads the current signers and thresholds of the account at `address` (a G-address).
 *
 * It reads the ledger entry, because the SDK's `getAccount` also reports "not found" during an outage, which would admit a
 * multisig account on its master key alone. Only a response without an entry means that the account does not exist.
 * @throws LedgerError `unavailable`
 */
export async function readAccountAuth(rpc: EntryReader, address: string): Promise<AccountAuth> {
  const { account } = await readAccount(rpc, address)
  return account ? authOf(address, account) : { exists: false }
}

/** Signers and thresholds of an account's entry. Lists only ed25519 keys: no other signer can sign a challenge. */
export function authOf(address: string, entry: xdr.AccountEntry): AccountAuth & { exists: true } {
  const [master = 0, low = 0, medium = 0, high = 0] = entry.thresholds.toBytes()
  const signers: Signer[] = [{ key: address, weight: master }]
  for (const { key, weight } of entry.signers) {
    if (key.type !== 'signerKeyTypeEd25519') continue
    signers.push({ key: StrKey.encodeEd25519PublicKey(key.ed25519.toBytes()), weight: Math.min(weight, 255) })
  }
  return {
    exists: true,
    thresholds: { low: Math.max(1, low), medium: Math.max(1, medium), high: Math.max(1, high) },
    // A master key of weight 0 is disabled, and must not count as a signer where a threshold is 0.
    signers: signers.filter(({ weight }) => weight > 0),
  }
}

/**
 * The entries of the accounts at `addresses` (G…, at most 200) in the same order, undefined for a missing account, and
 * the ledger of the response. Only a valid response can show that an account does not exist.
 * @throws LedgerError `unavailable`, including for a response with other entries
 */
async function readAccounts(
  server: EntryReader,
  addresses: readonly string[],
): Promise<{ accounts: (xdr.AccountEntry | undefined)[]; latestLedger: number }> {
  const ids = addresses.map((address) => Keypair.fromPublicKey(address).xdrAccountId())
  const keys = ids.map((accountId) => xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId })))
  const { entries, latestLedger } = await readEntries(server, keys)
  const accounts = entries.map((stored, index) => {
    if (stored === undefined) return undefined
    const entry = stored.val
    const id = ids[index]
    if (entry.type !== 'account' || !id || !entry.account.accountId.equals(id)) {
      throw ledgerUnreachable(new Error('the RPC returned a different entry than requested'))
    }
    return entry.account
  })
  return { accounts, latestLedger }
}

/** Reads one account. @throws LedgerError `unavailable` */
export async function readAccount(server: EntryReader, address: string): Promise<AccountReading> {
  const { accounts, latestLedger } = await readAccounts(server, [address])
  return { account: accounts[0], latestLedger }
}

/** An account's entry as of a ledger; undefined if the account does not exist. */
export interface AccountReading {
  account: xdr.AccountEntry | undefined
  latestLedger: number
}

/** @throws LedgerError `unavailable` */
export type ReadAccount = (address: string) => Promise<AccountReading>

/**
 * The shortest time between two calls: requests in between share the later one. Requests beyond the limit of a call go
 * into another call without this delay.
 */
const APART_MS = 100

interface Asker {
  address: string
  resolve(reading: AccountReading): void
  reject(error: unknown): void
}

/** Reads accounts. Concurrent requests share a call, so that many payers cost few calls. */
export function openAccounts(network: { server: EntryReader }): ReadAccount {
  const waiting: Asker[] = []
  let askedAt = Number.NEGATIVE_INFINITY

  async function ask(): Promise<void> {
    askedAt = performance.now()
    const asking = waiting.splice(0, MAX_KEYS)
    if (waiting.length > 0) setTimeout(ask, 0)
    const addresses = [...new Set(asking.map(({ address }) => address))]
    try {
      const { accounts, latestLedger } = await readAccounts(network.server, addresses)
      const byAddress = new Map(addresses.map((address, index) => [address, accounts[index]]))
      for (const { address, resolve } of asking) resolve({ account: byAddress.get(address), latestLedger })
    } catch (error) {
      for (const { reject } of asking) reject(error)
    }
  }

  return (address) =>
    new Promise((resolve, reject) => {
      waiting.push({ address, resolve, reject })
      const pause = Math.max(0, askedAt + APART_MS - performance.now())
      if (waiting.length === 1) setTimeout(ask, pause)
    })
}
