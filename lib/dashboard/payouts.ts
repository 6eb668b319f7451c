import { and, count, eq, or, type SQL, sql } from 'drizzle-orm'
import {
  batches,
  contractors,
  organisations,
  PAYOUT_STATUSES,
  type PayoutStatus,
  payouts,
} from '#drizzle/schema/directory.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { byTime } from '#lib/db/keyset.ts'
import { newestFirst, placeOf } from '#lib/db/paging.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { causeOfPayout } from './explanation.ts'
import { betweenDays, DAYS, type Filters, hasOnly, having, isOneOf, isReason, isRecordId } from './filters.ts'
import { orNull, type RecordList, type RowOf, readPart, type Source } from './list.ts'
import { hasReason } from './transfer-filters.ts'
import { firstInnerHash, outcomeOf, paysPayout } from './transfer-rows.ts'

const FILTERS = {
  status: isOneOf(PAYOUT_STATUSES),
  organisation: isRecordId,
  batch: isRecordId,
  contractor: isRecordId,
  /** why it failed: the code of its error, or that of its last transfer */
  reason: isReason,
  ...DAYS,
}

type PayoutFilters = Filters<typeof FILTERS>

/** The payouts of a batch in the order of their instructions, and those of others newest first. */
export const PAYOUTS: RecordList<typeof FILTERS, PayoutLine> = {
  filters: FILTERS,
  tabs: { name: 'status', values: PAYOUT_STATUSES },
  match: ({ db }, filters) => ({ ...sourceOf(db, filters), count: () => countByStatus(db, filters) }),
}

async function countByStatus(db: Database, filters: PayoutFilters): Promise<Map<string, number>> {
  if (filters.batch !== '' && hasOnly(filters, 'batch', 'status')) return await countOfBatch(db, filters.batch)
  const rows = await db
    .select({ value: payouts.status, count: count() })
    .from(payouts)
    .where(conditionOf(filters))
    .groupBy(payouts.status)
  return new Map(rows.map(({ value, count }) => [value, count]))
}

/**
 * Counts the payouts of a batch by status. A batch may have 50,000 payouts, so its row supplies most counts: only the
 * pending and the canceled payouts are counted.
 */
async function countOfBatch(db: Database, id: string): Promise<Map<PayoutStatus, number>> {
  const counted = (status: PayoutStatus) => db.$count(payouts, and(eq(payouts.batch, id), eq(payouts.status, status)))
  const [row] = await db
    .select({
      status: batches.status,
      all: batches.payoutCount,
      paid: batches.settledCount,
      failed: batches.failedCount,
      pending: counted('pending'),
      canceled: counted('canceled'),
    })
    .from(batches)
    .where(eq(batches.id, id))
  if (!row) return new Map()
  const { status, all, paid, failed, pending, canceled } = row
  // Locking a batch makes every draft ready.
  const counts = {
    [status === 'draft' ? 'draft' : 'ready']: all - paid - failed - pending,
    pending,
    paid,
    failed,
    canceled,
  }
  return new Map(Object.entries(counts) as [PayoutStatus, number][])
}

/**
 * Payouts in the order of their instructions, or those of an organisation or a contractor newest first.
 * @throws Refusal `filter-unknown` for any other filter without one of these
 */
function sourceOf(db: Database, filters: PayoutFilters): Source<PayoutLine> {
  const condition = and(conditionOf(filters), having(payouts.status, filters.status))
  const { organisation, batch, contractor, ...others } = filters
  const isOfAll = batch === '' && organisation === '' && contractor === ''
  // All payouts are read in their order, which no filter has an index for: a rare status would read every payout.
  const given = Object.entries(others).flatMap(([name, value]) => (value === '' ? [] : name))
  if (isOfAll && given.length > 0) {
    const message = `${given.join(', ')}: filter by organisation, batch or contractor, too`
    throw new Refusal('filter-unknown', message)
  }
  return {
    order: isOfAll ? { sequence: payouts.sequence, ascending: true } : { ...byTime(payouts), ascending: batch !== '' },
    read: async ({ beside, ...part }) =>
      (await readPart(selectPayouts(db, and(condition, beside)), part)).map(presentPayout),
    placeOf: isOfAll ? ({ sequence }) => [0, sequence] : placeOf,
  }
}

/** The condition of a list without its status. */
const conditionOf = ({ organisation, batch, contractor, reason, ...days }: PayoutFilters): SQL | undefined =>
  and(
    having(payouts.batch, batch),
    having(payouts.organisation, organisation),
    having(payouts.contractor, contractor),
    reason === ''
      ? undefined
      : and(
          eq(payouts.status, 'failed'),
          or(
            eq(payouts.error, reason),
            sql`exists (select from ${transfers} where ${paysPayout} and ${hasReason(reason)})`,
          ),
        ),
    betweenDays(payouts.createdAt, days),
  )

/** Finds the newest payouts that match a condition, newest first. */
export async function findPayoutLines(db: Database, condition: SQL, limit: number): Promise<PayoutLine[]> {
  const rows = await readPart(selectPayouts(db, condition), { order: newestFirst(payouts), limit })
  return rows.map(presentPayout)
}

function selectPayouts(db: Database, condition: SQL | undefined) {
  return db
    .select({
      id: payouts.id,
      sequence: payouts.sequence,
      organisation: organisations.name,
      organisationId: organisations.id,
      batch: batches.name,
      batchId: batches.id,
      contractor: contractors.name,
      contractorId: contractors.id,
      status: payouts.status,
      externalId: payouts.externalId,
      address: payouts.address,
      /** the hash of the signed inner transaction; null until then */
      innerHash: orNull(firstInnerHash),
      error: payouts.error,
      createdAt: payouts.createdAt,
      paidAt: payouts.paidAt,
      /** the last transfer that claimed it */
      transferId: transfers.id,
      sentAt: transfers.createdAt,
      ledgerHash: transfers.hash,
      outcome: outcomeOf,
    })
    .from(payouts)
    .innerJoin(batches, eq(batches.id, payouts.batch))
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .innerJoin(organisations, eq(organisations.id, payouts.organisation))
    .leftJoin(transfers, paysPayout)
    .where(condition)
}

/** A payout. Its sealed amount is not queried. */
export type PayoutLine = ReturnType<typeof presentPayout>

function presentPayout({ outcome, sentAt, ...line }: RowOf<typeof selectPayouts>) {
  return {
    ...line,
    transfer: outcome && sentAt && { status: outcome.status, createdAt: sentAt },
    /** an explanation of the error; may be empty */
    meaning: line.status === 'failed' ? causeOfPayout({ error: line.error, outcome }).meaning : '',
  }
}
