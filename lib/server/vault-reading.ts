import type { VaultState } from '#lib/faucet/vault.ts'
import { LedgerError } from '#lib/stellar/ledger-error.ts'
import type { Service } from './services.ts'

/** The vault's state; `none` without a vault, undefined while the ledger cannot be read. */
export type VaultReading = VaultState | 'none' | undefined

const FRESH_MS = 5_000

let cached: { vault: Service['vault']; at: number; reading: Promise<VaultReading> } | undefined

/** Reads the vault, at most once in five seconds in this process, however many pages are open. */
export function readVault({ vault, now }: Pick<Service, 'vault' | 'now'>): Promise<VaultReading> {
  const at = now().getTime()
  if (cached && cached.vault === vault && at - cached.at < FRESH_MS) return cached.reading
  cached = { vault, at, reading: read(vault) }
  return cached.reading
}

async function read(vault: Service['vault']): Promise<VaultReading> {
  if (!vault) return 'none'
  try {
    return await vault.read()
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error
    return error.code === 'foreign-contract' ? 'none' : undefined
  }
}
