import { and, desc, eq, lt, type SQL, sql } from 'drizzle-orm'
import { batches, contractors, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
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

/** The payouts that the filters find, newest first, in parts of at most `size`. No amount is read. */
export async function* readPayouts(db: Database, filters: PayoutFilters, size = 1_000) {
  const condition = conditionOf(filters)
  let before: number | undefined
  for (;;) {
    const older = before === undefined ? undefined : lt(payouts.sequence, before)
    const rows = await db
      .select(COLUMNS)
      .from(payouts)
      .innerJoin(batches, eq(batches.id, payouts.batch))
      .innerJoin(contractors, eq(contractors.id, payouts.contractor))
      .innerJoin(organisations, eq(organisations.id, payouts.organisation))
      .where(and(condition, older))
      .orderBy(desc(payouts.sequence))
      .limit(size)
    yield rows
    before = rows.at(-1)?.sequence
    if (rows.length < size || before === undefined) return
  }
}

function conditionOf({ organisation, batch }: PayoutFilters): SQL | undefined {
  const ofBatch = batch === '' ? undefined : isId(batch) ? eq(payouts.batch, batch) : sql`false`
  return and(ofOrganisation(payouts.organisation, organisation), ofBatch)
}
