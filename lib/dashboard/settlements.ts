import { and, eq, gt, gte, ne, type SQL, sql } from 'drizzle-orm'
import { unionAll } from 'drizzle-orm/pg-core'
import { rollups, settlementCounts } from '#drizzle/schema/rollups.ts'
import { transfers } from '#drizzle/schema/transfers.ts'
import type { Database } from '#lib/db/connection.ts'
import { DIMENSIONS, EVER, hourOf, isCounted, SECONDS, SUMS } from './rollups.ts'

/**
 * Settled transfers that were recorded at or after the hour of `since`, or ever: the counts, and the transfers that the
 * roll-up has not reached.
 */
export async function countSettlements(db: Database, since: Date | undefined) {
  const { hour, status, sponsor, bucket, count, milliseconds, fees } = settlementCounts
  const counts = { hour, status, sponsor, bucket, count, milliseconds, fees }
  const first = since && hourOf(since)
  const rolledUp = db
    .select(counts)
    .from(settlementCounts)
    .where(first === undefined ? eq(hour, EVER) : and(gte(hour, first), ne(hour, EVER)))
  const { hour: recordedIn, ...others } = DIMENSIONS
  const isRecent = first === undefined ? undefined : gte(transfers.createdAt, new Date(`${first}:00:00Z`))
  const fresh = db
    .select({ ...DIMENSIONS, ...SUMS })
    .from(transfers)
    .where(and(isCounted, isRecent, await isNotRolledUp(db)))
    .groupBy(recordedIn, ...Object.values(others))
  return unionAll(rolledUp, fresh as unknown as typeof rolledUp).as('settled')
}

/**
 * The condition for the transfers that the roll-up has not reached. Its position is read in the same statement as the
 * counts, so that each transfer is counted once; an earlier position keeps the plan to the index.
 */
async function isNotRolledUp(db: Database): Promise<SQL | undefined> {
  const isOfSettlements = eq(rollups.name, 'settlements')
  const [row] = await db.select({ after: rollups.after }).from(rollups).where(isOfSettlements)
  const after = sql`coalesce((select ${rollups.after} from ${rollups} where ${isOfSettlements}), 0)`
  return and(gt(transfers.settlement, row?.after ?? 0), gt(transfers.settlement, after))
}

/** The number and the sum of the settlement times in a bucket. */
export interface Bucket {
  bucket: number
  count: number
  milliseconds: number
}

/** A percentile of settlement times, in seconds: the mean of the bucket that contains it. Undefined without any. */
export function percentileOf(buckets: readonly Bucket[], share: number): number | undefined {
  const all = buckets.reduce((sum, { count }) => sum + count, 0)
  let left = Math.max(1, Math.ceil(all * share))
  for (const { bucket, ...rest } of byBucket(buckets)) {
    left -= rest.count
    if (left <= 0) return rest.milliseconds / 1000 / rest.count
  }
  return undefined
}

/** One entry per bucket, in their order. */
function byBucket(buckets: readonly Bucket[]): Bucket[] {
  return [...Map.groupBy(buckets, ({ bucket }) => bucket)]
    .map(([bucket, same]) => ({
      bucket,
      count: same.reduce((sum, { count }) => sum + count, 0),
      milliseconds: same.reduce((sum, { milliseconds }) => sum + milliseconds, 0),
    }))
    .toSorted((one, other) => one.bucket - other.bucket)
}

/** How many settlement times are below each bound, which is one of SECONDS. */
export function countBelow(buckets: readonly Bucket[], bounds: readonly (typeof SECONDS)[number][]): number[] {
  return bounds.map((bound) => {
    const end = SECONDS.indexOf(bound)
    return buckets.reduce((sum, { bucket, count }) => sum + (bucket <= end ? count : 0), 0)
  })
}
