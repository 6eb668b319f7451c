import { and, between, eq, inArray, isNull, or, type SQL, sql } from 'drizzle-orm'
import { type AnyPgColumn, union } from 'drizzle-orm/pg-core'
import { batches, contractors, payouts } from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import {
  anyOf,
  betweenDays,
  DAYS,
  type Filters,
  hasOnly,
  having,
  isAccount,
  isOneOf,
  isReason,
  isRecordId,
} from './filters.ts'
import type { ListContext, Part } from './list.ts'
import { ofUsers, TRANSFER_VIEWS, type TransferView } from './transfer-rows.ts'

export const TRANSFER_FILTERS = {
  view: isOneOf(Object.keys(TRANSFER_VIEWS)),
  organisation: isRecordId,
  contractor: isRecordId,
  batch: isRecordId,
  /** the sender, the recipient, or the payer of the quota */
  account: isAccount,
  /** why a transfer failed */
  reason: isReason,
  ...DAYS,
  sort: isOneOf(['oldest', 'fee']),
}

type TransferFilters = Filters<typeof TRANSFER_FILTERS>

/** Filters, with the condition for the transfers of their batch. */
export interface ResolvedFilters extends TransferFilters {
  ofBatch: SQL | undefined
  /** the number of paid payouts of a large batch, if no other filter is set */
  paid: number | undefined
  /** the faucet's account, whose deposits are listed only if its account is the filter */
  faucet: string | undefined
}

/** The payouts of a larger batch are not read. */
const MAX_PAYOUTS_READ = 1_000

/** A tolerance for clocks that differ. */
const MARGIN_MS = 24 * 3_600_000

/** Looks up the batch of a filter, and chooses by its size how to find its transfers. */
export async function resolveBatch({ db, faucet }: ListContext, filters: TransferFilters): Promise<ResolvedFilters> {
  if (filters.batch === '') return { ...filters, faucet, ofBatch: undefined, paid: undefined }
  const { id, organisation, payoutCount, settledCount, createdAt, progressedAt } = batches
  const [batch] = await db
    .select({ organisation, payoutCount, settledCount, createdAt, progressedAt })
    .from(batches)
    .where(eq(id, filters.batch))
  if (!batch || batch.payoutCount <= MAX_PAYOUTS_READ) {
    const ofBatch = db.select({ id: payouts.id }).from(payouts).where(eq(payouts.batch, filters.batch))
    return { ...filters, faucet, ofBatch: anyOf(transfers.payout, ofBatch), paid: undefined }
  }
  // Among the transfers of their organisation, those of a large batch are next to each other.
  const start = new Date(batch.createdAt.getTime() - MARGIN_MS)
  const end = new Date((batch.progressedAt ?? batch.createdAt).getTime() + MARGIN_MS)
  const isOfBatch = eq(payouts.batch, filters.batch)
  const ofBatch = and(
    eq(transfers.organisation, batch.organisation),
    between(transfers.createdAt, start, end),
    // PostgreSQL estimates that half of the transfers match, so it walks the index and stops at the end of the page.
    sql`(select ${isOfBatch} from ${payouts} where ${payouts.id} = ${transfers.payout})`,
  )
  const isWholeBatch = hasOnly(filters, 'batch', 'view', 'sort')
  return { ...filters, faucet, ofBatch, paid: isWholeBatch ? batch.settledCount : undefined }
}

/**
 * The condition for the transfers on a page of a filtered list. For an `account` it covers no more than the page can
 * show.
 */
export function matching(db: Database, filters: ResolvedFilters, part: Part): SQL | undefined {
  const { account } = filters
  const condition = and(conditionOf(db, filters), part.beside)
  return account === '' ? condition : ofAccount(db, account, condition, part)
}

function conditionOf(db: Database, filters: ResolvedFilters): SQL | undefined {
  const { view, organisation, contractor, ofBatch, account, reason, faucet, ...days } = filters
  return and(
    view === '' ? undefined : inArray(transfers.status, [...TRANSFER_VIEWS[view as TransferView]]),
    account === '' ? ofUsers(faucet) : undefined,
    having(transfers.organisation, organisation),
    contractor === '' ? undefined : paying(db, contractor),
    ofBatch,
    reason === '' ? undefined : hasReason(reason),
    betweenDays(transfers.createdAt, days),
  )
}

/** Matches failed transfers by the network's code or the number of the contract error. */
export function hasReason(reason: string): SQL | undefined {
  const { resultCode, contractError, status } = transfers
  const isReason = /^\d{1,9}$/.test(reason) ? eq(contractError, Number(reason)) : eq(resultCode, reason)
  return and(inArray(status, [...TRANSFER_VIEWS.failed]), isReason)
}

/**
 * Matches transfers by payee: the contractor of their payout, or without one the contractor with the recipient's
 * address.
 */
function paying(db: Database, contractor: string): SQL | undefined {
  const { id, organisation, address, deletedAt } = contractors
  const paid = db.select({ id: payouts.id }).from(payouts).where(eq(payouts.contractor, contractor))
  const one = and(eq(id, contractor), isNull(deletedAt))
  return or(
    anyOf(transfers.payout, paid),
    and(
      isNull(transfers.payout),
      sql`${transfers.organisation} = ${db.select({ organisation }).from(contractors).where(one)}`,
      sql`${transfers.recipient} = ${db.select({ address }).from(contractors).where(one)}`,
    ),
  )
}

/**
 * Matches the transfers of an account as sender, recipient and payer of the quota, as many of each as the page may have:
 * each role has an index, and a channel may have sent millions.
 */
function ofAccount(db: Database, name: string, condition: SQL | undefined, { order, limit }: Part): SQL {
  const { account, recipient, quotaAccount, id } = transfers
  const withRole = (role: AnyPgColumn) =>
    db
      .select({ id })
      .from(transfers)
      .where(and(eq(role, name), condition))
      .orderBy(...order)
      .limit(limit)
  return anyOf(id, union(withRole(account), withRole(recipient), withRole(quotaAccount)))
}
