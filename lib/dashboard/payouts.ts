import { and, desc, eq, lt, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { readInParts } from '#lib/db/paging.ts'
import { isId } from '#lib/directory/ids.ts'
import { ofOrganisation } from './list.ts'

const COLUMNS = {
  sequence: payouts.sequence,
  id: payouts.id,
  organisation: organisations.name,
  batch: batches.name,
  batchId: batches.id,
  contractor: contractors.name,
  contractorId: contractors.id,
  status: payouts.status,
  address: payouts.address,
  transfer: payouts.transfer,
  txHash: payouts.txHash,
  error: payouts.error,
  createdAt: payouts.createdAt,
  paidAt: payouts.paidAt,
}

interface PayoutFilters {
  organisation: string
  batch: string
}

/** Reads the payouts that match the filters, newest first, in parts of at most `size`, without their amounts. */
export function readPayouts(db: Database, filters: PayoutFilters, size = 1_000) {
  const condition = conditionOf(filters)
  const read = async (last: { sequence: number } | undefined) =>
    await db
      .select(COLUMNS)
      .from(payouts)
      .innerJoin(batches, eq(batches.id, payouts.batch))
      .innerJoin(contractors, eq(contractors.id, payouts.contractor))
      .innerJoin(organisations, eq(organisations.id, payouts.organisation))
      .where(and(condition, last && lt(payouts.sequence, last.sequence)))
      .orderBy(desc(payouts.sequence))
      .limit(size)
  return readInParts(read, size)
}

function conditionOf({ organisation, batch }: PayoutFilters): SQL | undefined {
  const ofBatch = batch === '' ? undefined : isId(batch) ? eq(payouts.batch, batch) : sql`false`
  return and(ofOrganisation(payouts.organisation, organisation), ofBatch)
}
