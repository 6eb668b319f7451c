import { Refusal } from '#lib/refusal/refusal.ts'
import { readBalance, readUnderlyingAsset, type StellarAsset } from '#lib/stellar/asset.ts'
import type { EntryReader } from '#lib/stellar/entries.ts'
import { formatUnits } from '#lib/text/money.ts'

/** The address (G… or C…) that backs the confidential balances, and its balance as a decimal with seven places. */
export interface VaultState {
  vault: string
  held: string
}

export interface Vault {
  /** @throws LedgerError */
  read(): Promise<VaultState>
}

/** @param address the contract or account with the asset behind `token`: the token itself, or a bridge */
export function openVault(options: { server: EntryReader; token: string; address: string }): Vault {
  const { server, token, address } = options
  // A token can't change its asset, so it is read once.
  let underlying: StellarAsset | undefined
  return {
    read: async () => {
      underlying ??= await readUnderlyingAsset(server, token)
      return { vault: address, held: formatUnits(await readBalance(server, underlying, address)) }
    },
  }
}

/** @throws Refusal `vault-not-configured` when neither vault nor token is configured */
export function requireVault(vault: Vault | undefined): Vault {
  if (!vault) throw new Refusal('vault-not-configured')
  return vault
}
