import { eq, ne, type SQL, sql } from 'drizzle-orm'
import type { AnyPgColumn } from 'drizzle-orm/pg-core'
import { payouts } from '#drizzle/schema/directory.ts'
import { envelopes, type TransferStatus, transfers } from '#drizzle/schema/transfers.ts'

/** The table of transfers, for all queries of the dashboard, with the parts that they share. */
export const transferRows = transfers

/** The envelopes of transfers. */
export const envelopeRows = envelopes

/** How a transfer stands, in the words of the dashboard. */
export type TransferState = TransferStatus

/** The views by which transfers are listed, with their statuses. Every page counts what expired as failed. */
export const TRANSFER_VIEWS = {
  open: ['open'],
  succeeded: ['succeeded'],
  failed: ['failed', 'expired', 'unknown'],
} as const satisfies Record<string, readonly TransferStatus[]>
export type TransferView = keyof typeof TRANSFER_VIEWS

/** The condition that a transfer is the one that last claimed a payout. */
export const paysPayout = eq(payouts.transfer, transferRows.id)

const ofFirstEnvelope = <Value = string>(value: AnyPgColumn | SQL) => sql<Value>`(select ${value} from ${envelopes}
  where ${envelopes.transfer} = ${transfers.id} order by ${envelopes.recordedAt}, ${envelopes.innerHash} limit 1)`

/** The hashes of what was first signed for a transfer; a deposit has no fee bump, and so one hash only. */
export const firstInnerHash = ofFirstEnvelope(envelopes.innerHash)
export const firstOuterHash = ofFirstEnvelope(sql`coalesce(${envelopes.outerHash}, ${envelopes.innerHash})`)

/** The code with which the network last refused what was first signed. */
export const refusalCode = ofFirstEnvelope<string | null>(envelopes.resultCode)

/** How far the service's clock may be from the ledger's (s). */
const CLOCK_DIFFERENCE = 30

/**
 * Whether a transfer ended while one of its envelopes was still valid, for longer than two clocks can differ: then another
 * transaction has used its sequence number. `maxTime` 0 means that the envelope never expires.
 */
export const endedEarly = sql<boolean>`coalesce((select bool_or(${envelopes.maxTime} = 0
  or ${envelopes.maxTime} > extract(epoch from ${transfers.settledAt}) + ${sql.raw(String(CLOCK_DIFFERENCE))})
  from ${envelopes} where ${envelopes.transfer} = ${transfers.id}), false)`

/** The condition that a transfer is not one of the faucet's deposits, which are not sponsored for a user. */
export const notOfFaucet = (faucet: string | undefined): SQL | undefined =>
  faucet === undefined ? undefined : ne(transferRows.account, faucet)

/** The columns that tell why a transfer has its status. */
export const outcomeOf = {
  status: transferRows.status,
  refusalCode,
  endedEarly,
  resultCode: transferRows.resultCode,
  contractError: transferRows.contractError,
}
