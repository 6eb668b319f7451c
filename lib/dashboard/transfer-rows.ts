import { and, eq, ne, not, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn } from 'drizzle-orm/pg-core'
import { payouts } from '#drizzle/schema/directory.ts'
import { envelopes, type TransferKind, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'
import { isOwnCall } from '#lib/transfers/counts.ts'

/** The tabs of the list of transfers with their statuses. Every page counts expired transfers as failed. */
export const TRANSFER_VIEWS = {
  open: ['open'],
  succeeded: ['succeeded'],
  failed: ['failed', 'expired', 'unknown'],
} as const satisfies Record<string, readonly TransferStatus[]>
export type TransferView = keyof typeof TRANSFER_VIEWS

/** The condition that a transfer is the one that last claimed a payout. */
export const paysPayout = eq(payouts.transfer, transfers.id)

const ofFirstEnvelope = <Value = string>(value: AnyPgColumn | SQL) => sql<Value>`(select ${value} from ${envelopes}
  where ${envelopes.transfer} = ${transfers.id} order by ${envelopes.recordedAt}, ${envelopes.innerHash} limit 1)`

/** The hashes of a transfer's first envelope. A deposit has no fee bump, and therefore a single hash. */
export const firstInnerHash = ofFirstEnvelope(envelopes.innerHash)
export const firstOuterHash = ofFirstEnvelope(sql`coalesce(${envelopes.outerHash}, ${envelopes.innerHash})`)

/** The code with which the network last refused the first envelope. */
export const refusalCode = ofFirstEnvelope<string | null>(envelopes.resultCode)

/** The condition that excludes the faucet's deposits and the channels' own calls, which no user requested. */
export const ofUsers = (faucet: string | undefined): SQL | undefined =>
  and(not(isOwnCall), faucet === undefined ? undefined : ne(transfers.account, faucet))

/** The columns that explain a transfer's status. */
export const outcomeOf = {
  status: transfers.status,
  refusalCode,
  resultCode: transfers.resultCode,
  contractError: transfers.contractError,
}

/** What a transfer is, before the name of its recipient. */
export const TRANSFER_PHRASES: Record<TransferKind, string> = {
  transfer: 'transfer to',
  delegated: 'transfer to',
  deposit: 'deposit to',
  register: 'registration of',
  merge: 'merge of',
  set_spender: 'delegation to',
  revoke_spender: 'revocation of the delegation to',
}
