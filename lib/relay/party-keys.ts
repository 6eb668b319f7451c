import { MAX_KEYS } from '#lib/stellar/entries.ts'
import { type ConfidentialAccount, readAuditorKey, readConfidentialAccounts } from '#lib/wallet/account.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'

/** What a payment needs of a party, payer or payee: public keys. */
interface PartyKeys {
  viewingKey: Uint8Array
  /** the key of its auditor, which the registry's operator may rotate */
  auditor: Uint8Array
}

/** The keys of the parties of payments, read from the ledger once. */
export interface PartyKeyCache {
  /**
   * @param others further parties that are read in the same call, because they are about to be paid
   * @throws WalletError `not-registered` if one of the addresses isn't; LedgerError
   */
  read(addresses: readonly string[], others?: readonly string[]): Promise<(address: string) => PartyKeys>
  /** Forgets all keys: a payment that was proved with them would fail. */
  forget(): void
}

/** How many accounts are remembered at most. */
const MAX_ACCOUNTS = 5_000

/**
 * An account is registered once and keeps its keys. An auditor's key may be rotated: then the proofs made with the old one
 * fail, which a simulation shows, and the caller forgets it.
 */
export function openPartyKeys(deployment: () => Promise<Deployment>): PartyKeyCache {
  /** undefined where an address is not registered yet: it is read again */
  const accounts = new Map<string, Promise<ConfidentialAccount | undefined>>()
  const auditors = new Map<number, Promise<Uint8Array>>()

  function readAccounts(addresses: readonly string[]): void {
    if (accounts.size > MAX_ACCOUNTS) accounts.clear()
    const reading = deployment().then(({ rpc, token }) => readConfidentialAccounts(rpc, token, addresses))
    for (const address of addresses) {
      const account = reading.then((found) => found.get(address))
      const forget = () => void (accounts.get(address) === account && accounts.delete(address))
      account.then((found) => found ?? forget(), forget)
      accounts.set(address, account)
    }
  }

  async function readAuditor(id: number): Promise<Uint8Array> {
    const key = auditors.get(id) ?? deployment().then((opened) => readAuditorKey(opened, id))
    auditors.set(id, key)
    key.catch(() => auditors.delete(id))
    return await key
  }

  return {
    read: async (addresses, others = []) => {
      const isUnknown = (address: string) => !accounts.has(address)
      const required = addresses.filter(isUnknown)
      const wanted = new Set([...required, ...others.filter(isUnknown)])
      if (required.length > 0) readAccounts([...wanted].slice(0, MAX_KEYS))
      const parties = new Map<string, PartyKeys>()
      for (const address of addresses) {
        const account = await accounts.get(address)
        if (!account) throw new WalletError('not-registered', `${address} has no confidential account`)
        parties.set(address, { viewingKey: account.viewingKey, auditor: await readAuditor(account.auditorId) })
      }
      return (address) => {
        const keys = parties.get(address)
        if (!keys) throw new Error(`${address} is not a party to this payment`)
        return keys
      }
    },
    forget: () => {
      accounts.clear()
      auditors.clear()
    },
  }
}
