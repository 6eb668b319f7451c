import { and, asc, eq, type SQL, sql } from 'drizzle-orm'
import { BATCH_STATUSES, batches, organisations, payouts } from '#drizzle/schema/directory.ts'
import type { Database } from '#lib/db/connection.ts'
import { countUpTo } from '#lib/db/count.ts'
import { byTime } from '#lib/db/keyset.ts'
import { BATCH_COLUMNS } from '#lib/directory/batches/batches.ts'
import { isId } from '#lib/directory/ids.ts'
import { anyOf, BY_TIME, betweenDays, having, isOneOf, isRecordId } from './filters.ts'
import { listTable, onlyRow, orNull, type RowOf } from './list.ts'

/** When the batch started, or a payout of it was last sent or settled; null for a completed batch. */
const lastProgress = orNull(
  sql`case when ${batches.status} <> 'completed' then coalesce(${batches.progressedAt}, ${batches.startedAt}) end`.mapWith(
    batches.createdAt,
  ),
)

export type BatchLine = RowOf<typeof selectBatches>

/** The batches of all organisations. */
export const BATCHES = listTable({
  filters: { status: isOneOf(BATCH_STATUSES), organisation: isRecordId, contractor: isRecordId, ...BY_TIME },
  table: batches,
  newest: byTime(batches),
  status: batches.status,
  conditionOf: (db, { organisation, contractor, ...days }) => {
    const paying = db.select({ batch: payouts.batch }).from(payouts).where(eq(payouts.contractor, contractor))
    return and(
      having(batches.organisation, organisation),
      contractor === '' ? undefined : anyOf(batches.id, paying),
      betweenDays(batches.createdAt, days),
    )
  },
  select: selectBatches,
})

function selectBatches(db: Database, condition: SQL | undefined) {
  return db
    .select({
      ...BATCH_COLUMNS,
      organisation: batches.organisation,
      organisationName: organisations.name,
      sequence: batches.sequence,
      /** when it started or a payout last moved; null before that and once it is completed */
      progressedAt: lastProgress,
    })
    .from(batches)
    .innerJoin(organisations, eq(organisations.id, batches.organisation))
    .where(condition)
}

/** Lists the batches in progress, longest without progress first, and counts them up to one more than MAX_COUNTED. */
export async function listMovingBatches(db: Database, limit: number): Promise<{ batches: BatchLine[]; total: number }> {
  const started = eq(batches.status, 'started')
  const [rows, counts] = await Promise.all([
    selectBatches(db, started).orderBy(asc(batches.progressedAt), asc(batches.sequence)).limit(limit),
    countUpTo(db, batches, byTime(batches), { started }),
  ])
  return { batches: rows, total: counts.get('started') ?? 0 }
}

export const findBatchLine = async (db: Database, id: string) =>
  isId(id) ? await onlyRow(selectBatches(db, eq(batches.id, id))) : undefined
