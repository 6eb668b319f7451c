import { and, asc, eq, gt, inArray } from 'drizzle-orm'
import {
  BATCH_STATUSES,
  type BatchStatus,
  batches,
  contractors,
  organisations,
  payouts,
} from '#drizzle/schema/directory.ts'
import { sponsoredTransfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { isId } from '#lib/directory/ids.ts'
import { afterPosition, cutPage, newestFirst, type Page, type PageRequest, rowsToRead } from '#lib/http/paging.ts'
import { explainTransfer } from './explanation.ts'

const COLUMNS = {
  id: batches.id,
  name: batches.name,
  organisation: batches.organisation,
  organisationName: organisations.name,
  status: batches.status,
  payoutCount: batches.payoutCount,
  settledCount: batches.settledCount,
  failedCount: batches.failedCount,
  createdAt: batches.createdAt,
  startedAt: batches.startedAt,
  completedAt: batches.completedAt,
  sequence: batches.sequence,
}

/** A batch and how far it has come. */
export type BatchLine = Pick<typeof batches.$inferSelect, Exclude<keyof typeof COLUMNS, 'organisationName'>> & {
  organisationName: string
}

/** The status that `text` names. */
export function batchStatusOf(text: string): BatchStatus | undefined {
  return BATCH_STATUSES.find((status) => status === text)
}

/** The batches of all organisations, newest first. */
export async function listAllBatches(
  db: Database,
  { status }: { status: BatchStatus | undefined },
  page: PageRequest,
): Promise<Page<BatchLine>> {
  const rows = await db
    .select(COLUMNS)
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(and(status && eq(batches.status, status), afterPosition(batches, page)))
    .orderBy(...newestFirst(batches))
    .limit(rowsToRead(page))
  return cutPage(rows, page)
}

/** The batches that are being paid, newest first. */
export async function listRunningBatches(db: Database, limit: number): Promise<BatchLine[]> {
  return await db
    .select(COLUMNS)
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(inArray(batches.status, ['ready', 'started']))
    .orderBy(...newestFirst(batches))
    .limit(limit)
}

export async function findAnyBatch(db: Database, id: string): Promise<BatchLine | undefined> {
  if (!isId(id)) return undefined
  const [batch] = await db
    .select(COLUMNS)
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(eq(batches.id, id))
  return batch
}

const PAYOUT_COLUMNS = {
  id: payouts.id,
  sequence: payouts.sequence,
  contractor: contractors.name,
  status: payouts.status,
  address: payouts.address,
  transfer: payouts.transfer,
  txHash: payouts.txHash,
  error: payouts.error,
  createdAt: payouts.createdAt,
  paidAt: payouts.paidAt,
  outcome: {
    status: sponsoredTransfers.status,
    resultCode: sponsoredTransfers.resultCode,
    contractError: sponsoredTransfers.contractError,
  },
}

/** A payout of a batch; what is paid is sealed, and not even read. */
export type PayoutLine = Pick<
  typeof payouts.$inferSelect,
  Exclude<keyof typeof PAYOUT_COLUMNS, 'contractor' | 'outcome'>
> & {
  contractor: string
  /** what the error means, where there is more to say */
  meaning: string
}

/** The payouts of a batch, in the order of their instructions. */
export async function listPayoutsOf(db: Database, batch: string, page: PageRequest): Promise<Page<PayoutLine>> {
  const rows = await db
    .select(PAYOUT_COLUMNS)
    .from(payouts)
    .innerJoin(contractors, eq(contractors.id, payouts.contractor))
    .leftJoin(sponsoredTransfers, eq(sponsoredTransfers.innerHash, payouts.transfer))
    .where(and(eq(payouts.batch, batch), page.after && gt(payouts.sequence, page.after.sequence)))
    .orderBy(asc(payouts.sequence))
    .limit(rowsToRead(page))
  const { items, next } = cutPage(rows, page)
  return {
    items: items.map(({ outcome, ...line }) => ({
      ...line,
      meaning: line.status === 'failed' && outcome ? explainTransfer(outcome) : '',
    })),
    next,
  }
}
