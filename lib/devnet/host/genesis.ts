import type { Asset } from '@stellar/stellar-sdk'
import type { StoredEntry } from '../state.ts'
import type { LedgerContext } from './invoke.ts'

export interface Genesis {
  readonly passphrase: string
  /** the test USDC */
  readonly asset: Asset
  /** 64 bytes: the Grumpkin point of auditor 0 */
  readonly auditorKey: Uint8Array
  readonly ledger: LedgerContext
}

/** Contract ids (C…). `underlying` is the asset contract of the test USDC, `native` that of XLM. */
export interface GenesisContracts {
  readonly token: string
  readonly verifier: string
  readonly auditor: string
  readonly underlying: string
  readonly native: string
}

export function genesisContracts(_genesis: Genesis): { entries: StoredEntry[]; contracts: GenesisContracts } {
  throw new Error('not built yet')
}
