import { MAX_KEYS } from '#lib/stellar/entries.ts'
import { type ConfidentialAccount, readAuditorKey, readConfidentialAccounts } from '#lib/wallet/account.ts'
import type { Deployment } from '#lib/wallet/deployment.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'

/** The public keys that a payment is encrypted to. */
export interface PaymentKeys {
  /** of the payee */
  viewingKey: Uint8Array
  /** of the payee's auditor and of the payer's, which the registry's operator may rotate */
  auditorRecipient: Uint8Array
  auditorSender: Uint8Array
}

/** The keys of payers and payees, read from the ledger once. */
export interface PartyKeyCache {
  /**
   * @param others further parties that are read in the same call, because they are about to be paid
   * @throws WalletError `not-registered` if payer or payee isn't; LedgerError
   */
  read(payer: string, payee: string, others: readonly string[]): Promise<PaymentKeys>
  /** Forgets all keys: a payment that was proved with them would fail. */
  forget(): void
}

/** How many accounts are remembered at most. */
const MAX_ACCOUNTS = 5_000

/** A registered account keeps its keys. If an auditor's key was rotated, simulations with the old one fail, and the caller forgets it. */
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

  async function readParty(address: string) {
    const account = await accounts.get(address)
    if (!account) throw new WalletError('not-registered', `${address} has no confidential account`)
    const { auditorId: id, viewingKey } = account
    const auditor = auditors.get(id) ?? deployment().then((opened) => readAuditorKey(opened, id))
    auditors.set(id, auditor)
    auditor.catch(() => auditors.delete(id))
    return { viewingKey, auditor: await auditor }
  }

  return {
    read: async (payer, payee, others) => {
      const isUnknown = (address: string) => !accounts.has(address)
      const required = [payer, payee].filter(isUnknown)
      const wanted = new Set([...required, ...others.filter(isUnknown)])
      if (required.length > 0) readAccounts([...wanted].slice(0, MAX_KEYS))
      const [from, to] = await Promise.all([readParty(payer), readParty(payee)])
      return { viewingKey: to.viewingKey, auditorRecipient: to.auditor, auditorSender: from.auditor }
    },
    forget: () => {
      accounts.clear()
      auditors.clear()
    },
  }
}
