import { MOST_KEYS } from '#lib/stellar/entries.ts'
import { readAuditorKey, readConfidentialAccounts } from '#lib/wallet/account.ts'
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
   * @throws WalletError `not-registered` if one of the addresses is; LedgerError
   */
  read(addresses: readonly string[], others?: readonly string[]): Promise<(address: string) => PartyKeys>
  /** Forgets all keys: a payment that was proved with them would fail. */
  forget(): void
}

/** How many accounts are remembered at most. */
const MOST_ACCOUNTS = 5_000

/**
 * An account is registered once and keeps its keys. An auditor's key may be rotated: then the proofs made with the old one
 * fail, which a simulation shows, and the caller forgets it.
 */
export function openPartyKeys(deployment: () => Promise<Deployment>): PartyKeyCache {
  const accounts = new Map<string, { viewingKey: Uint8Array; auditorId: number }>()
  const auditors = new Map<number, Promise<Uint8Array>>()

  async function readAccounts(addresses: readonly string[]): Promise<void> {
    const { rpc, token } = await deployment()
    if (accounts.size > MOST_ACCOUNTS) accounts.clear()
    for (const [address, { viewingKey, auditorId }] of await readConfidentialAccounts(rpc, token, addresses)) {
      accounts.set(address, { viewingKey, auditorId })
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
      if (required.length > 0) await readAccounts([...required, ...others.filter(isUnknown)].slice(0, MOST_KEYS))
      const parties = new Map<string, PartyKeys>()
      for (const address of addresses) {
        const account = accounts.get(address)
        if (!account) throw new WalletError('not-registered', `${address} has no confidential account`)
        parties.set(address, { viewingKey: account.viewingKey, auditor: await readAuditor(account.auditorId) })
      }
      return (address) => {
        const keys = parties.get(address)
        if (!keys) throw new Error(`${address} is no party to this payment`)
        return keys
      }
    },
    forget: () => {
      accounts.clear()
      auditors.clear()
    },
  }
}
