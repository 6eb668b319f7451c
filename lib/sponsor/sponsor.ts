import type { Keypair } from '@stellar/stellar-sdk'
import type { Database } from '#lib/db/connection.ts'
import { Refusal } from '#lib/http/refusal.ts'
import type { ReadAccount } from '#lib/stellar/accounts.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { SponsorRules } from './policy.ts'
import type { QuotaLimits } from './quota.ts'
import type { Settlement } from './settlement.ts'

/** The fee sponsor of a process: its key, its rules, and what it works with. */
export interface Sponsor {
  keypair: Keypair
  rules: SponsorRules
  limits: QuotaLimits
  /** how long a request waits for the ledger, in milliseconds */
  patience: number
  network: Network
  settlement: Settlement
  /** the addresses that the service controls: those of its keys, and the channels of every relay */
  ownAddresses: (db: Database) => Promise<ReadonlySet<string>>
  readAccount: ReadAccount
  /** stroops that the sponsor may spend, as of at least the given ledger */
  readFloat: (ledger: number) => Promise<bigint>
  /** the same, asked of the ledger now */
  readBalance: () => Promise<bigint>
  now: () => Date
}

/** @throws Refusal `not-wired` when the service has no sponsor key */
export function requireSponsor(sponsor: Sponsor | undefined): Sponsor {
  if (!sponsor) throw new Refusal('sponsor-not-configured', 'no fee sponsor is configured')
  return sponsor
}
