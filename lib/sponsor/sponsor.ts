import type { Keypair } from '@stellar/stellar-sdk'
import type { Database } from '#lib/db/connection.ts'
import type { Network } from '#lib/stellar/network.ts'
import type { Submission } from '#lib/submission/submission.ts'
import type { SponsorRules } from './policy.ts'
import type { QuotaLimits } from './quota.ts'

/** The fee sponsor of a process: its key, its rules, and what it works with. */
export interface Sponsor {
  keypair: Keypair
  rules: SponsorRules
  limits: QuotaLimits
  network: Network
  submission: Submission
  /** the addresses that the service controls: those of its keys, and the channels of every relay */
  controlledAddresses: (db: Database) => Promise<ReadonlySet<string>>
  /** stroops that the sponsor may spend, as of at least the given ledger */
  readFloat: (ledger: number) => Promise<bigint>
  /** the same, asked of the ledger now */
  readBalance: () => Promise<bigint>
  now: () => Date
}
